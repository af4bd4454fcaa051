//! Whether the operator may act, and why not: the gate that every attempt and every write passes.
//!
//! Whoever can pause the operator owns a [`PauseHandle`]; the operator runs while all of them agree.
//! Streams, queue and handlers each hold an [`PauseGate`]. A pause begins a new epoch: whatever
//! was planned in an earlier one is dropped, and the lists are read anew afterwards.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::info;

/// Why the operator does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PauseReason {
    /// It has not found out yet whether it may.
    Starting,
    /// Operators with a higher priority are there.
    Peers(String),
    /// Operators with the same priority are there.
    Tie(String),
    /// The peering that it must take part in does not exist, or cannot be used.
    NoPeering(String),
    /// Another replica is the leader.
    Standby {
        /// The leader, if it is known.
        leader: Option<String>,
    },
    /// It was the leader, and could not renew its lease in time.
    LeaseLost,
}

/// How long the operator may act, if that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseTerm {
    /// Nobody else could act instead.
    Unlimited,
    /// Up to this moment, unless it is extended.
    Until(Instant),
    /// Not at all.
    Over,
}

#[derive(Debug, Clone)]
struct State {
    epoch: u64,
    pauses: Vec<Option<PauseReason>>,
    tenure: LeaseTerm,
    /// The pause that the log told of last; none if it told that there is none.
    told: Option<PauseReason>,
}

/// The one place where the state is changed.
#[derive(Debug, Clone)]
pub(crate) struct PauseSwitch {
    state: Arc<watch::Sender<State>>,
}

/// The right of one part of the operator to pause it.
#[derive(Debug)]
pub(crate) struct PauseHandle {
    switch: PauseSwitch,
    place: usize,
}

/// What everybody who acts has to ask; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PauseGate {
    state: watch::Receiver<State>,
}

/// The tenure ended before the work did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease has ended")]
pub(crate) struct LeaseEnded;

// === impl PauseReason ===

impl PauseReason {
    /// A word for the kind of pause, for machines.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Peers(_) => "peers",
            Self::Tie(_) => "tie",
            Self::NoPeering(_) => "no-peering",
            Self::Standby { .. } => "standby",
            Self::LeaseLost => "lease-lost",
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("it is not known yet who else runs"),
            Self::Peers(peers) => write!(f, "in favour of {peers}"),
            Self::Tie(peers) => write!(f, "the priority is the same as that of {peers}"),
            Self::NoPeering(story) => f.write_str(story),
            Self::Standby {
                leader: Some(leader),
            } => write!(f, "{leader} is the leader"),
            Self::Standby { leader: None } => f.write_str("there is no leader yet"),
            Self::LeaseLost => f.write_str("the lease could not be renewed in time"),
        }
    }
}

// === impl PauseSwitch ===

impl PauseSwitch {
    /// A switch that nobody holds, and the view of it.
    pub(crate) fn new() -> (Self, PauseGate) {
        let (sender, state) = watch::channel(State {
            epoch: 0,
            pauses: Vec::new(),
            tenure: LeaseTerm::Unlimited,
            told: None,
        });
        let switch = Self {
            state: Arc::new(sender),
        };
        (switch, PauseGate { state })
    }

    /// Gives somebody the right to pause, and pauses until that one says otherwise.
    pub(crate) fn handle(&self) -> PauseHandle {
        let mut place = 0;
        self.state.send_modify(|state| {
            place = state.pauses.len();
            state.pauses.push(Some(PauseReason::Starting));
        });
        PauseHandle {
            switch: self.clone(),
            place,
        }
    }

    /// The same without a pause at first, for somebody who comes while the operator runs.
    pub(crate) fn handle_without_pause(&self) -> PauseHandle {
        let mut place = 0;
        self.state.send_if_modified(|state| {
            place = state.pauses.len();
            state.pauses.push(None);
            false
        });
        PauseHandle {
            switch: self.clone(),
            place,
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(|state| {
            let ran = state.pause().is_none();
            let lapsed = state.has_lapsed();
            change(state);
            // What was refused after the tenure had ended is not to be forgotten.
            if lapsed || (ran && state.pause().is_some()) {
                state.epoch += 1;
            }
            state.tell();
        });
    }
}

// === impl PauseHandle ===

impl PauseHandle {
    /// Pauses the operator.
    pub(crate) fn pause(&self, pause: PauseReason) {
        self.switch
            .change(|state| state.pauses[self.place] = Some(pause));
    }

    /// No longer wants a pause.
    pub(crate) fn resume(&self) {
        self.switch.change(|state| state.pauses[self.place] = None);
    }

    /// Lets the operator act up to this moment, and no longer.
    pub(crate) fn resume_until(&self, until: Instant) {
        self.switch.change(|state| {
            state.pauses[self.place] = None;
            state.tenure = LeaseTerm::Until(until);
        });
    }

    /// Pauses the operator, and forbids all writes.
    pub(crate) fn forbid(&self, pause: PauseReason) {
        self.switch.change(|state| {
            state.pauses[self.place] = Some(pause);
            state.tenure = LeaseTerm::Over;
        });
    }
}

// === impl State ===

impl State {
    fn pause(&self) -> Option<&PauseReason> {
        self.pauses.iter().flatten().next()
    }

    /// Tells the log what has changed; that nothing is known yet is no news.
    fn tell(&mut self) {
        let pause = self.pause().cloned();
        match &pause {
            Some(PauseReason::Starting) => return,
            told if *told == self.told => return,
            Some(pause) => info!("Pausing operations: {pause}."),
            None => info!("Resuming operations."),
        }
        self.told = pause;
    }

    /// Whether the time is over, though nobody has said so yet.
    fn has_lapsed(&self) -> bool {
        matches!(self.tenure, LeaseTerm::Until(until) if Instant::now() >= until)
    }

    fn may_write(&self) -> bool {
        match self.tenure {
            LeaseTerm::Unlimited => true,
            LeaseTerm::Until(until) => Instant::now() < until,
            LeaseTerm::Over => false,
        }
    }

    fn is_running(&self) -> bool {
        self.pause().is_none() && self.may_write()
    }
}

// === impl PauseGate ===

impl PauseGate {
    /// The view of an operator that never pauses.
    pub(crate) fn always() -> Self {
        PauseSwitch::new().1
    }

    /// Whether an attempt may start now.
    pub(crate) fn is_running(&self) -> bool {
        self.state.borrow().is_running()
    }

    /// Whether a write may be sent now. While the operator is paused in favour of a peer, handlers
    /// that run may finish, and what they did is recorded.
    pub(crate) fn may_write(&self) -> bool {
        self.state.borrow().may_write()
    }

    /// Counts the pauses that began.
    pub(crate) fn epoch(&self) -> u64 {
        self.state.borrow().epoch
    }

    /// Why nothing is done at the moment, if that is so.
    pub(crate) fn pause(&self) -> Option<PauseReason> {
        self.state.borrow().pause().cloned()
    }

    /// Waits for any change; `false` if there will be none.
    pub(crate) async fn changed(&mut self) -> bool {
        self.state.changed().await.is_ok()
    }

    /// Waits until the operator runs, and returns the epoch.
    pub(crate) async fn running(&self) -> u64 {
        let mut state = self.state.clone();
        // Nobody may be left who could change it; if it is paused then, it is for ever.
        let epoch = state
            .wait_for(State::is_running)
            .await
            .ok()
            .map(|it| it.epoch);
        match epoch {
            Some(epoch) => epoch,
            None => std::future::pending().await,
        }
    }

    /// Waits until a pause begins, or has begun since that epoch.
    pub(crate) async fn paused_since(&self, epoch: u64) {
        let mut state = self.state.clone();
        let paused = |state: &State| state.epoch != epoch || state.pause().is_some();
        if state.wait_for(paused).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this operator leads, whether or not something else makes it pause.
    pub(crate) async fn leading(&self) {
        let mut state = self.state.clone();
        if state.wait_for(State::may_write).await.is_err() && !self.may_write() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this operator does not lead any more.
    pub(crate) async fn lapsed(&self) {
        let mut state = self.state.clone();
        loop {
            let tenure = state.borrow_and_update().tenure;
            let changed = match tenure {
                LeaseTerm::Over => return,
                LeaseTerm::Unlimited => state.changed().await,
                LeaseTerm::Until(until) => tokio::select! {
                    () = sleep_until(until) => {
                        if self.may_write() {
                            continue;
                        }
                        return;
                    }
                    changed = state.changed() => changed,
                },
            };
            if changed.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Does the work as long as this operator leads.
    ///
    /// The clock is asked before every single step of the work: a process that was stopped finds
    /// out before it goes on, not when a timer tells it.
    ///
    /// # Errors
    /// If the lease ended first. The work is dropped where it stands.
    pub(crate) async fn while_leading<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, LeaseEnded> {
        if self.state.borrow().tenure == LeaseTerm::Unlimited {
            return Ok(work.await);
        }
        let mut work = pin!(work);
        let mut lapsed = pin!(self.lapsed());
        std::future::poll_fn(|cx| {
            if !self.may_write() || lapsed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(LeaseEnded));
            }
            work.as_mut().poll(cx).map(Ok)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
