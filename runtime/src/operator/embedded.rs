//! An operator inside of another program: started, awaited and stopped by it.

use std::time::Duration;

use kube::Client;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Error, Operator};
use crate::coordination::pause::{PauseGate, PauseSwitch};
use crate::health;
use crate::index::Indices;
use crate::index::readiness::Gate;
use crate::task::SpawnedTask;
use crate::task::heartbeat::Heartbeats;

/// How often it is looked whether an operator is ready: nobody tells.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is to be seen of an operator, before it starts and while it runs.
#[derive(Clone)]
pub(super) struct Insight {
    pub(super) switch: PauseSwitch,
    pub(super) pause_gate: PauseGate,
    pub(super) heartbeats: Heartbeats,
    /// Whether everything was listed that is handled.
    pub(super) listed: Gate,
    /// Whether everything was listed that is indexed, and is in the indices.
    pub(super) indexed: Gate,
}

/// An operator that runs beside whatever else the program does.
///
/// When this is dropped, the operator is told to stop, and does so by itself.
#[must_use = "the operator stops when this is dropped"]
pub struct RunningOperator {
    task: SpawnedTask<Result<(), Error>>,
    stop: CancellationToken,
    insight: Insight,
    indices: Indices,
    serves_webhooks: bool,
    _stop_on_drop: DropGuard,
}

/// The operator has ended; [`RunningOperator::ended`] tells why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operator has ended before it was ready")]
pub struct EndedBeforeReady;

// === impl Operator ===

impl Operator {
    /// Starts the operator beside the other tasks of a program, and returns at once.
    ///
    /// It installs no handlers of signals and writes no log by itself: that is the program's
    /// business. Several operators may run in one program.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn(self, client: Client) -> RunningOperator {
        let stop = CancellationToken::new();
        let mut resources = self.resources.iter();
        RunningOperator {
            serves_webhooks: resources.any(|resource| !resource.webhooks.is_empty()),
            insight: self.insight.clone(),
            indices: self.indices.clone(),
            task: SpawnedTask::spawn(self.run(client, stop.clone().cancelled_owned())),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }
    }
}

// === impl RunningOperator ===

impl RunningOperator {
    /// Waits until the operator does its work: its startup handlers have succeeded, all that it
    /// handles was listed, its indices are complete, and its webhooks are known. A replica that
    /// stands by is ready, too.
    ///
    /// # Errors
    /// If the operator ends before that.
    pub async fn ready(&self) -> Result<(), EndedBeforeReady> {
        while !self.problems().is_empty() {
            if self.task.is_over() {
                return Err(EndedBeforeReady);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// What keeps the operator from being ready; nothing if it is.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let Insight {
            pause_gate,
            heartbeats,
            listed,
            indexed,
            ..
        } = &self.insight;
        let mut problems = health::unreadiness(heartbeats, pause_gate, self.serves_webhooks);
        let epoch = pause_gate.epoch();
        if problems.is_empty() && pause_gate.is_running() {
            for gate in [listed, indexed] {
                if !gate.is_open(epoch) {
                    problems.push(format!("not listed yet: {}", gate.missing(epoch)));
                }
            }
        }
        problems
    }

    #[cfg(feature = "testing")]
    pub(crate) fn is_over(&self) -> bool {
        self.task.is_over()
    }

    /// The indices of the operator.
    #[must_use]
    pub fn indices(&self) -> &Indices {
        &self.indices
    }

    /// Waits until the operator ends, by itself or because it was told to.
    ///
    /// # Errors
    /// Why it ended by itself.
    pub async fn ended(&mut self) -> Result<(), Error> {
        match self.task.result().await {
            Some(result) => result,
            None => Err(Error::Ended(
                "it panicked, or its end was told before".to_owned(),
            )),
        }
    }

    /// Tells the operator to stop, and waits until its handlers have finished.
    ///
    /// # Errors
    /// Why it ended by itself, if it did before.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.stop.cancel();
        self.ended().await
    }
}

// === impl Insight ===

impl Default for Insight {
    fn default() -> Self {
        let (switch, pause_gate) = PauseSwitch::new();
        Self {
            switch,
            pause_gate,
            heartbeats: Heartbeats::default(),
            listed: Gate::new(),
            indexed: Gate::new(),
        }
    }
}
