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
use crate::task::heartbeat::{ReadinessCondition, State as ConditionState};
use crate::watch::stream::ListObserver;

/// How long listing may take before people should know that handlers wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often they are reminded.
const REMINDER: Duration = Duration::from_secs(60);

/// Where streams say that they have listed all.
#[derive(Debug, Clone)]
pub(crate) struct ListGate {
    state: Arc<watch::Sender<State>>,
}

/// One stream that is waited for; not any more when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingList {
    gate: ListGate,
    number: u32,
}

/// The indices for those who are called from outside, at any time.
#[derive(Debug, Clone)]
pub(crate) struct GatedIndices {
    pub(crate) indices: Indices,
    pub(crate) gate: ListGate,
    pub(crate) pause_gate: PauseGate,
}

/// Those who are waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingLists(Vec<MissingList>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct MissingList {
    name: String,
    error: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    lists: BTreeMap<u32, ExpectedList>,
    issued: u32,
    /// The epoch in which everything was there.
    opened: Option<u64>,
}

#[derive(Debug)]
struct ExpectedList {
    name: String,
    /// The epoch of its last complete list.
    listed: Option<u64>,
    /// Why it cannot be listed, as far as is known.
    error: Option<String>,
}

// === impl ListGate ===

impl ListGate {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(watch::Sender::default()),
        }
    }

    /// Waits for one more stream.
    pub(crate) fn expect_list(&self, name: String) -> PendingList {
        let mut number = 0;
        self.state.send_modify(|state| {
            number = state.issued;
            state.issued += 1;
            let list = ExpectedList {
                name,
                listed: None,
                error: None,
            };
            state.lists.insert(number, list);
        });
        PendingList {
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
    pub(crate) fn missing(&self, epoch: u64) -> MissingLists {
        let state = self.state.borrow();
        let lists = state.lists.values();
        let absent = lists.filter(|list| list.listed != Some(epoch));
        let absent = absent.map(|list| MissingList {
            name: list.name.clone(),
            error: list.error.clone(),
        });
        MissingLists(absent.collect())
    }
}

/// Tells people when handlers wait for long, and why; for ever.
pub(crate) async fn warn_while_incomplete(
    gate: ListGate,
    pause_gate: PauseGate,
    condition: ReadinessCondition,
) {
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

// === impl GatedIndices ===

impl GatedIndices {
    /// Waits until the indices are complete. A paused operator follows nothing, so that there is
    /// nothing to wait for: what it knew before has to do.
    ///
    /// # Errors
    /// Names who is still waited for after `patience`.
    pub(crate) async fn complete(&self, patience: Duration) -> Result<(), MissingLists> {
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
        self.opened == Some(epoch) || self.lists.is_empty()
    }

    fn open_if_complete(&mut self, epoch: u64) {
        let mut lists = self.lists.values();
        if lists.all(|list| list.listed == Some(epoch)) {
            self.opened = Some(epoch);
        }
    }
}

// === impl PendingList ===

impl PendingList {
    /// All that there was in this epoch has been listed.
    pub(crate) fn listed(&self, epoch: u64) {
        self.gate.state.send_modify(|state| {
            if let Some(list) = state.lists.get_mut(&self.number) {
                list.listed = Some(epoch);
                list.error = None;
            }
            state.open_if_complete(epoch);
        });
    }

    /// Listing does not succeed.
    pub(crate) fn failed(&self, error: String) {
        self.gate.state.send_modify(|state| {
            if let Some(list) = state.lists.get_mut(&self.number) {
                list.error = Some(error);
            }
        });
    }
}

impl ListObserver for PendingList {
    fn listed(&self, epoch: u64) {
        Self::listed(self, epoch);
    }
}

impl Drop for PendingList {
    fn drop(&mut self) {
        self.gate.state.send_modify(|state| {
            state.lists.remove(&self.number);
            let newest = state.lists.values().filter_map(|list| list.listed);
            if let Some(epoch) = newest.max() {
                state.open_if_complete(epoch);
            }
        });
    }
}

// === impl MissingLists ===

impl fmt::Display for MissingLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, list) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            f.write_str(&list.name)?;
            if let Some(error) = &list.error {
                write!(f, " ({error})")?;
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
        let gate = ListGate::new();
        assert!(gate.is_open(0));
        let pods = gate.expect_list("pods".to_owned());
        let jobs = gate.expect_list("jobs".to_owned());
        pods.listed(0);
        assert!(!gate.is_open(0));
        assert_eq!(gate.missing(0).to_string(), "jobs");
        jobs.listed(0);
        assert!(gate.is_open(0));
        assert!(!gate.is_open(1));
        pods.listed(1);
        assert!(!gate.is_open(1));
        jobs.failed("no such kind".to_owned());
        assert_eq!(gate.missing(1).to_string(), "jobs (no such kind)");
        jobs.listed(1);
        assert!(gate.is_open(1));
    }

    #[test]
    fn who_joins_later_or_leaves_is_not_waited_for() {
        let gate = ListGate::new();
        let pods = gate.expect_list("pods".to_owned());
        let jobs = gate.expect_list("jobs".to_owned());
        pods.listed(0);
        drop(jobs);
        assert!(gate.is_open(0));
        let later = gate.expect_list("later".to_owned());
        assert!(gate.is_open(0));
        drop((pods, later));
        assert!(gate.is_open(7));
    }

    #[tokio::test]
    async fn whoever_waits_is_told() {
        let gate = ListGate::new();
        let pods = gate.expect_list("pods".to_owned());
        tokio::join!(gate.opened(3), async { pods.listed(3) });
    }
}
