//! Whether everything was listed that has to be, before handlers are called.
//!
//! Each stream holds a ticket, and says when it has listed all. A pause begins anew: afterwards all
//! is listed again before anything is handled. Streams that join later are not waited for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

use super::Indices;
use crate::coordination::pause::PauseGate;
use crate::task::heartbeat::{ConditionState, ReadinessCondition};
use crate::watch::stream::Attendance;

/// How long listing may take before people should know that handlers wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often they are reminded.
const REMINDER: Duration = Duration::from_secs(60);

/// Where streams say that they have listed all.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    state: Arc<watch::Sender<State>>,
}

/// One stream that is waited for; not any more when this is dropped.
#[derive(Debug)]
pub(crate) struct ListTicket {
    gate: Gate,
    number: u32,
}

/// The indices for those who are called from outside, at any time.
#[derive(Debug, Clone)]
pub(crate) struct ReadyIndices {
    pub(crate) indices: Indices,
    pub(crate) gate: Gate,
    pub(crate) pause_gate: PauseGate,
}

/// Those who are waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing(Vec<Absentee>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Absentee {
    name: String,
    obstacle: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<u32, Stream>,
    issued: u32,
    /// The epoch in which everything was there.
    opened: Option<u64>,
}

#[derive(Debug)]
struct Stream {
    name: String,
    /// The epoch of its last complete list.
    listed: Option<u64>,
    /// Why it cannot be listed, as far as is known.
    obstacle: Option<String>,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(watch::Sender::default()),
        }
    }

    /// Waits for one more stream.
    pub(crate) fn ticket(&self, name: String) -> ListTicket {
        let mut number = 0;
        self.state.send_modify(|state| {
            number = state.issued;
            state.issued += 1;
            let stream = Stream {
                name,
                listed: None,
                obstacle: None,
            };
            state.streams.insert(number, stream);
        });
        ListTicket {
            gate: self.clone(),
            number,
        }
    }

    /// Whether nobody is waited for in this epoch.
    pub(crate) fn is_open(&self, epoch: u64) -> bool {
        self.state.borrow().is_open(epoch)
    }

    /// Waits until nobody is waited for in this epoch.
    pub(crate) async fn opened(&self, epoch: u64) {
        let mut state = self.state.subscribe();
        let opened = state.wait_for(|state| state.is_open(epoch)).await;
        // The sender is our own: it cannot be gone.
        drop(opened);
    }

    /// Who is waited for in this epoch.
    pub(crate) fn missing(&self, epoch: u64) -> Missing {
        let state = self.state.borrow();
        let streams = state.streams.values();
        let absent = streams.filter(|stream| stream.listed != Some(epoch));
        let absent = absent.map(|stream| Absentee {
            name: stream.name.clone(),
            obstacle: stream.obstacle.clone(),
        });
        Missing(absent.collect())
    }
}

/// Tells people when handlers wait for long, and why; for ever.
pub(crate) async fn remind(gate: Gate, pause_gate: PauseGate, condition: ReadinessCondition) {
    loop {
        let epoch = pause_gate.running().await;
        condition.set(ConditionState::Pending(
            "they are not complete yet".to_owned(),
        ));
        let mut patience = PATIENCE;
        let mut waited = false;
        loop {
            tokio::select! {
                () = gate.opened(epoch) => break,
                () = pause_gate.paused_since(epoch) => break,
                () = tokio::time::sleep(patience) => {}
            }
            let missing = gate.missing(epoch);
            warn!("no handler is called before the indices are complete; missing: {missing}");
            condition.set(ConditionState::Failing(format!("missing: {missing}")));
            patience = REMINDER;
            waited = true;
        }
        if gate.is_open(epoch) {
            condition.set(ConditionState::Fine);
            if waited {
                info!("the indices are complete");
            }
        }
        pause_gate.paused_since(epoch).await;
        condition.set(ConditionState::Idle);
    }
}

// === impl ReadyIndices ===

impl ReadyIndices {
    /// Waits until the indices are complete. A paused operator follows nothing, so that there is
    /// nothing to wait for: what it knew before has to do.
    ///
    /// # Errors
    /// Names who is still waited for after `patience`.
    pub(crate) async fn complete(&self, patience: Duration) -> Result<(), Missing> {
        let epoch = self.pause_gate.epoch();
        if !self.pause_gate.is_running() || self.gate.is_open(epoch) {
            return Ok(());
        }
        tokio::select! {
            () = self.gate.opened(epoch) => Ok(()),
            () = self.pause_gate.paused_since(epoch) => Ok(()),
            () = tokio::time::sleep(patience) => Err(self.gate.missing(epoch)),
        }
    }
}

// === impl State ===

impl State {
    fn is_open(&self, epoch: u64) -> bool {
        self.opened == Some(epoch) || self.streams.is_empty()
    }

    fn review(&mut self, epoch: u64) {
        let mut streams = self.streams.values();
        if streams.all(|stream| stream.listed == Some(epoch)) {
            self.opened = Some(epoch);
        }
    }
}

// === impl ListTicket ===

impl ListTicket {
    /// All that there was in this epoch has been listed.
    pub(crate) fn listed(&self, epoch: u64) {
        self.gate.state.send_modify(|state| {
            if let Some(stream) = state.streams.get_mut(&self.number) {
                stream.listed = Some(epoch);
                stream.obstacle = None;
            }
            state.review(epoch);
        });
    }

    /// Listing does not succeed.
    pub(crate) fn hindered(&self, obstacle: String) {
        self.gate.state.send_modify(|state| {
            if let Some(stream) = state.streams.get_mut(&self.number) {
                stream.obstacle = Some(obstacle);
            }
        });
    }
}

impl Attendance for ListTicket {
    fn listed(&self, epoch: u64) {
        Self::listed(self, epoch);
    }
}

impl Drop for ListTicket {
    fn drop(&mut self) {
        self.gate.state.send_modify(|state| {
            state.streams.remove(&self.number);
            let newest = state.streams.values().filter_map(|stream| stream.listed);
            if let Some(epoch) = newest.max() {
                state.review(epoch);
            }
        });
    }
}

// === impl Missing ===

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, absentee) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            f.write_str(&absentee.name)?;
            if let Some(obstacle) = &absentee.obstacle {
                write!(f, " ({obstacle})")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_when_all_have_listed_in_the_same_epoch() {
        let gate = Gate::new();
        assert!(gate.is_open(0));
        let pods = gate.ticket("pods".to_owned());
        let jobs = gate.ticket("jobs".to_owned());
        pods.listed(0);
        assert!(!gate.is_open(0));
        assert_eq!(gate.missing(0).to_string(), "jobs");
        jobs.listed(0);
        assert!(gate.is_open(0));
        assert!(!gate.is_open(1));
        pods.listed(1);
        assert!(!gate.is_open(1));
        jobs.hindered("no such kind".to_owned());
        assert_eq!(gate.missing(1).to_string(), "jobs (no such kind)");
        jobs.listed(1);
        assert!(gate.is_open(1));
    }

    #[test]
    fn who_joins_later_or_leaves_is_not_waited_for() {
        let gate = Gate::new();
        let pods = gate.ticket("pods".to_owned());
        let jobs = gate.ticket("jobs".to_owned());
        pods.listed(0);
        drop(jobs);
        assert!(gate.is_open(0));
        let later = gate.ticket("later".to_owned());
        assert!(gate.is_open(0));
        drop((pods, later));
        assert!(gate.is_open(7));
    }

    #[tokio::test]
    async fn whoever_waits_is_told() {
        let gate = Gate::new();
        let pods = gate.ticket("pods".to_owned());
        tokio::join!(gate.opened(3), async { pods.listed(3) });
    }
}
