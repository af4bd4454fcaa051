//! Pauses of the operator: the gate that every attempt and every write passes.
//!
//! A part that can pause the operator owns a [`PauseHandle`]; the operator runs while none of them
//! pauses it. Streams, queue and handlers each hold a [`PauseGate`]. A pause begins a new epoch: work
//! planned in an earlier epoch is dropped, and the streams list their objects again afterwards.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use kopf_core::pause::{LeaseTerm, PauseChange, PauseState};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::info;

/// The reason for a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PauseReason {
    /// The operator does not know yet whether it may run.
    Starting,
    /// Operators with a higher priority run.
    Peers(String),
    /// Operators with the same priority run.
    Tie(String),
    /// The mandatory peering does not exist, or cannot be used.
    NoPeering(String),
    /// Another replica is the leader.
    Standby {
        /// The leader, if it is known.
        leader: Option<String>,
    },
    /// This replica was the leader, and could not renew its lease in time.
    LeaseLost,
}

#[derive(Debug, Clone, Default)]
struct State {
    pauses: PauseState<PauseReason, Instant>,
    /// The pause that was logged last; none if the end of a pause was.
    logged: Option<PauseReason>,
}

/// Changes the state, on behalf of all handles.
#[derive(Debug, Clone)]
pub(crate) struct PauseSwitch {
    state: Arc<watch::Sender<State>>,
}

/// The right of one part of the operator to pause it.
#[derive(Debug)]
pub(crate) struct PauseHandle {
    switch: PauseSwitch,
    index: usize,
}

/// The view of the state that streams, queue and handlers check; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PauseGate {
    state: watch::Receiver<State>,
}

/// A time in which the operator runs, or in which it is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PausePeriod {
    pub(crate) epoch: u64,
    pub(crate) running: bool,
}

/// The lease ended before the work did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease has ended")]
pub(crate) struct LeaseEnded;

// === impl PauseReason ===

impl PauseReason {
    /// The kind of pause as one word, for metrics and the health endpoint.
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
            Self::Starting => f.write_str("it is not known yet which other operators run"),
            Self::Peers(peers) => write!(f, "in favour of {peers}"),
            Self::Tie(peers) => write!(f, "the priority is the same as that of {peers}"),
            Self::NoPeering(message) => f.write_str(message),
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
    /// A switch without handles, and the view of it.
    pub(crate) fn new() -> (Self, PauseGate) {
        let (sender, state) = watch::channel(State::default());
        let switch = Self {
            state: Arc::new(sender),
        };
        (switch, PauseGate { state })
    }

    /// Makes a handle, and pauses the operator until that handle resumes it.
    pub(crate) fn handle(&self) -> PauseHandle {
        let mut index = 0;
        self.state.send_modify(|state| {
            index = state.pauses.take_slot(Some(PauseReason::Starting));
        });
        PauseHandle {
            switch: self.clone(),
            index,
        }
    }

    /// Makes a handle without a pause, for a part that starts while the operator runs.
    pub(crate) fn handle_without_pause(&self) -> PauseHandle {
        let mut index = 0;
        self.state.send_if_modified(|state| {
            index = state.pauses.take_slot(None);
            false
        });
        PauseHandle {
            switch: self.clone(),
            index,
        }
    }

    fn change(&self, index: usize, change: PauseChange<PauseReason, Instant>) {
        self.state.send_modify(|state| {
            state.pauses.change(index, change, Instant::now());
            state.log_change();
        });
    }
}

// === impl PauseHandle ===

impl PauseHandle {
    /// Pauses the operator.
    pub(crate) fn pause(&self, pause: PauseReason) {
        self.switch.change(self.index, PauseChange::Pause(pause));
    }

    /// Ends the pause of this handle.
    pub(crate) fn resume(&self) {
        self.switch.change(self.index, PauseChange::Resume);
    }

    /// Ends the pause of this handle, and lets the operator write up to this moment.
    pub(crate) fn resume_until(&self, until: Instant) {
        self.switch
            .change(self.index, PauseChange::ResumeUntil(until));
    }

    /// Pauses the operator, and forbids all writes.
    pub(crate) fn forbid(&self, pause: PauseReason) {
        self.switch.change(self.index, PauseChange::Forbid(pause));
    }
}

impl Drop for PauseHandle {
    /// A pause outlives its handle: a part that ends by a defect must not resume the operator.
    fn drop(&mut self) {
        self.switch.state.send_if_modified(|state| {
            state.pauses.free_slot(self.index);
            false
        });
    }
}

// === impl State ===

impl State {
    fn pause(&self) -> Option<&PauseReason> {
        self.pauses.pause()
    }

    /// Logs a change of the pause; the pause of the start is not logged.
    fn log_change(&mut self) {
        let pause = self.pause().cloned();
        match &pause {
            Some(PauseReason::Starting) => return,
            logged if *logged == self.logged => return,
            Some(pause) => info!("Pausing operations: {pause}."),
            None => info!("Resuming operations."),
        }
        self.logged = pause;
    }

    fn may_write(&self) -> bool {
        match self.pauses.lease_term() {
            // Without an election the clock is not needed.
            LeaseTerm::Unlimited => true,
            _ => self.pauses.may_write(Instant::now()),
        }
    }

    fn is_running(&self) -> bool {
        self.pause().is_none() && self.may_write()
    }

    fn period(&self) -> PausePeriod {
        PausePeriod {
            epoch: self.pauses.epoch(),
            running: self.pause().is_none(),
        }
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

    /// The number of pauses so far.
    pub(crate) fn epoch(&self) -> u64 {
        self.state.borrow().pauses.epoch()
    }

    /// The reason for the current pause, if there is one.
    pub(crate) fn pause(&self) -> Option<PauseReason> {
        self.state.borrow().pause().cloned()
    }

    /// Waits for any change; `false` if the switch is gone.
    pub(crate) async fn changed(&mut self) -> bool {
        self.state.changed().await.is_ok()
    }

    /// Waits until the operator runs, and returns the epoch.
    pub(crate) async fn running(&self) -> u64 {
        let mut state = self.state.clone();
        // If the switch is gone, a pause lasts for ever.
        let epoch = state
            .wait_for(State::is_running)
            .await
            .ok()
            .map(|it| it.pauses.epoch());
        match epoch {
            Some(epoch) => epoch,
            None => std::future::pending().await,
        }
    }

    /// The current time in which the operator runs or not.
    pub(crate) fn period(&self) -> PausePeriod {
        self.state.borrow().period()
    }

    /// Waits until the operator runs, or also until it is known that it does not, and returns the
    /// time that has begun.
    pub(crate) async fn next_period(&self, also_paused: bool) -> PausePeriod {
        let mut state = self.state.clone();
        let begun = |state: &State| match state.pause() {
            None => state.may_write(),
            Some(PauseReason::Starting) => false,
            Some(_) => also_paused,
        };
        let period = state.wait_for(begun).await.ok().map(|it| it.period());
        match period {
            Some(period) => period,
            None => std::future::pending().await,
        }
    }

    /// Waits until this time is over.
    pub(crate) async fn period_ended(&self, period: PausePeriod) {
        let mut state = self.state.clone();
        let over = |state: &State| state.period() != period;
        if state.wait_for(over).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until a pause begins, or has begun since that epoch.
    pub(crate) async fn paused_since(&self, epoch: u64) {
        let mut state = self.state.clone();
        let paused = |state: &State| state.pauses.epoch() != epoch || state.pause().is_some();
        if state.wait_for(paused).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this replica leads, even if another reason pauses it.
    pub(crate) async fn leading(&self) {
        let mut state = self.state.clone();
        if state.wait_for(State::may_write).await.is_err() && !self.may_write() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this replica does not lead any more.
    pub(crate) async fn lease_ended(&self) {
        let mut state = self.state.clone();
        loop {
            let lease_term = state.borrow_and_update().pauses.lease_term();
            let changed = match lease_term {
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

    /// Does the work as long as this replica leads.
    ///
    /// The clock is read before every step of the work: a process that was suspended notices the
    /// end of its lease before it continues, not when a timer fires.
    ///
    /// # Errors
    /// If the lease ended first. The work is dropped at its current step.
    pub(crate) async fn while_leading<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, LeaseEnded> {
        if self.state.borrow().pauses.lease_term() == LeaseTerm::Unlimited {
            return Ok(work.await);
        }
        let mut work = pin!(work);
        let mut lease_ended = pin!(self.lease_ended());
        std::future::poll_fn(|cx| {
            if !self.may_write() || lease_ended.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(LeaseEnded));
            }
            work.as_mut().poll(cx).map(Ok)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
