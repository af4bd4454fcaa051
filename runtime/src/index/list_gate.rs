//! The gate that opens when all expected lists are complete: no handler is called before that.
//!
//! Each stream holds a pending list, and completes it. A pause begins a new epoch: everything is
//! listed again before any handler is called. The gate does not wait for streams that start later.
//! Webhooks read indices in a pause, too, when lists complete at a gate of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

use super::Indices;
use crate::coordination::pause::PauseGate;
use crate::task::heartbeat::{ConditionState, ReadinessCondition};
use crate::watch::stream::ListObserver;

/// The time until the first warning about incomplete lists.
const FIRST_WARNING: Duration = Duration::from_secs(10);

/// The interval of further warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// A gate that is open when all expected lists are complete.
#[derive(Debug, Clone)]
pub(crate) struct ListGate {
    state: Arc<watch::Sender<State>>,
}

/// A list that the gate waits for until this is dropped.
#[derive(Debug)]
pub(crate) struct PendingList {
    gate: ListGate,
    number: u32,
}

/// The indices with the gate that says when they are complete, for webhooks.
#[derive(Debug, Clone)]
pub(crate) struct GatedIndices {
    pub(crate) indices: Indices,
    pub(crate) gate: ListGate,
    /// The gate of lists in a pause.
    pub(crate) gate_of_pauses: ListGate,
    pub(crate) pause_gate: PauseGate,
}

/// The lists that are not complete.
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
    next_number: u32,
    /// The newest epoch in which all lists were complete.
    opened: Option<u64>,
}

#[derive(Debug)]
struct ExpectedList {
    name: String,
    /// The epoch of its last complete list.
    listed: Option<u64>,
    /// The error of the last attempt to list.
    error: Option<String>,
}

// === impl ListGate ===

impl ListGate {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(watch::Sender::default()),
        }
    }

    /// Makes the gate wait for one more list.
    pub(crate) fn expect_list(&self, name: String) -> PendingList {
        let mut number = 0;
        self.state.send_modify(|state| {
            number = state.next_number;
            state.next_number += 1;
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

    /// True if all lists of this epoch are complete.
    pub(crate) fn is_open(&self, epoch: u64) -> bool {
        self.state.borrow().is_open(epoch)
    }

    /// True if all lists of some epoch were complete.
    fn was_open(&self) -> bool {
        let state = self.state.borrow();
        state.opened.is_some() || state.lists.is_empty()
    }

    /// Waits until all lists of this epoch are complete.
    pub(crate) async fn opened(&self, epoch: u64) {
        let mut state = self.state.subscribe();
        let opened = state.wait_for(|state| state.is_open(epoch)).await;
        // An error is impossible: the gate itself holds the sender.
        drop(opened);
    }

    /// The lists of this epoch that are not complete.
    pub(crate) fn missing(&self, epoch: u64) -> MissingLists {
        let state = self.state.borrow();
        let lists = state.lists.values();
        let missing = lists.filter(|list| list.listed != Some(epoch));
        let missing = missing.map(|list| MissingList {
            name: list.name.clone(),
            error: list.error.clone(),
        });
        MissingLists(missing.collect())
    }
}

/// Warns as long as handlers wait for incomplete indices; runs for ever.
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
        let mut until_warning = FIRST_WARNING;
        let mut warned = false;
        loop {
            tokio::select! {
                () = gate.opened(epoch) => break,
                () = pause_gate.paused_since(epoch) => break,
                () = tokio::time::sleep(until_warning) => {}
            }
            let missing = gate.missing(epoch);
            warn!("no handler is called before the indices are complete; missing: {missing}");
            condition.set(ConditionState::Failing(format!("missing: {missing}")));
            until_warning = WARNING_INTERVAL;
            warned = true;
        }
        if gate.is_open(epoch) {
            condition.set(ConditionState::Fine);
            if warned {
                info!("the indices are complete");
            }
        }
        pause_gate.paused_since(epoch).await;
        condition.set(ConditionState::Idle);
    }
}

// === impl GatedIndices ===

impl GatedIndices {
    /// Waits until the indices are complete. If they were complete once, a review does not wait in a
    /// pause: the operator updates them in pauses, too.
    ///
    /// # Errors
    /// The lists that are not complete after `patience`.
    pub(crate) async fn complete(&self, patience: Duration) -> Result<(), MissingLists> {
        let mut late = std::pin::pin!(tokio::time::sleep(patience));
        loop {
            let period = self.pause_gate.period();
            let gate = if period.running {
                &self.gate
            } else {
                &self.gate_of_pauses
            };
            let complete_before = || self.gate.was_open() || self.gate_of_pauses.was_open();
            if gate.is_open(period.epoch) || (!period.running && complete_before()) {
                return Ok(());
            }
            tokio::select! {
                () = gate.opened(period.epoch) => return Ok(()),
                () = self.pause_gate.period_ended(period) => {}
                () = &mut late => return Err(gate.missing(period.epoch)),
            }
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
    /// The list of this epoch is complete.
    pub(crate) fn listed(&self, epoch: u64) {
        self.gate.state.send_modify(|state| {
            if let Some(list) = state.lists.get_mut(&self.number) {
                list.listed = Some(epoch);
                list.error = None;
            }
            state.open_if_complete(epoch);
        });
    }

    /// The list failed, and is tried again.
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
    fn the_gate_opens_when_all_lists_of_an_epoch_are_complete() {
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
    fn the_gate_does_not_wait_for_lists_that_are_dropped_or_added_later() {
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
    async fn waiting_ends_when_the_gate_opens() {
        let gate = ListGate::new();
        let pods = gate.expect_list("pods".to_owned());
        tokio::join!(gate.opened(3), async { pods.listed(3) });
    }
}
