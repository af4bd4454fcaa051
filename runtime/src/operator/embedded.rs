//! An operator inside of another program, which starts, awaits and stops it.

use std::time::Duration;

use kube::Client;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::state::OperatorState;
use super::{Error, Operator};
use crate::health;
use crate::index::Indices;
use crate::task::SpawnedTask;

/// The interval at which readiness is polled: not all of its conditions notify.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An operator that runs beside the other tasks of a program.
///
/// When this is dropped, the operator stops in the background.
#[must_use = "the operator stops when this is dropped"]
pub struct RunningOperator {
    task: SpawnedTask<Result<(), Error>>,
    stop: CancellationToken,
    state: OperatorState,
    indices: Indices,
    serves_webhooks: bool,
    _stop_on_drop: DropGuard,
}

/// The operator has ended before it was ready; [`RunningOperator::ended`] returns the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operator has ended before it was ready")]
pub struct EndedBeforeReady;

// === impl Operator ===

impl Operator {
    /// Starts the operator beside the other tasks of a program, and returns at once.
    ///
    /// The operator installs neither signal handlers nor a log subscriber: both belong to the
    /// program. Several operators may run in one program.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn(self, client: Client) -> RunningOperator {
        let stop = CancellationToken::new();
        let mut resources = self.resources.iter();
        RunningOperator {
            serves_webhooks: resources.any(|resource| !resource.webhooks.is_empty()),
            state: self.state.clone(),
            indices: self.indices.clone(),
            task: SpawnedTask::spawn(self.run(client, stop.clone().cancelled_owned())),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }
    }
}

// === impl RunningOperator ===

impl RunningOperator {
    /// Waits until the operator is ready: its startup handlers have succeeded, all handled kinds
    /// were listed, its indices are complete, and its webhooks are registered. A replica that waits
    /// for the leader is ready, too.
    ///
    /// # Errors
    /// If the operator ends before that.
    pub async fn ready(&self) -> Result<(), EndedBeforeReady> {
        while !self.problems().is_empty() {
            if self.task.is_over() {
                return Err(EndedBeforeReady);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// The reasons for which the operator is not ready; empty if it is.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let OperatorState {
            pause_gate,
            heartbeats,
            listed,
            indexed,
            ..
        } = &self.state;
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

    /// The indices of the operator.
    #[must_use]
    pub fn indices(&self) -> &Indices {
        &self.indices
    }

    /// Whether the operator has ended, by itself or because the program stopped it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.task.is_over()
    }

    /// Waits until the operator ends, by itself or because the program stops it.
    ///
    /// # Errors
    /// The reason for which it ended by itself.
    pub async fn ended(&mut self) -> Result<(), Error> {
        match self.task.result().await {
            Some(result) => result,
            None => Err(Error::Ended(
                "it panicked, or its result was taken before".to_owned(),
            )),
        }
    }

    /// Asks the operator to stop, and does not wait; [`ended`](Self::ended) does.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Stops the operator, and waits until its handlers have finished.
    ///
    /// # Errors
    /// The reason for which it ended by itself, if it did before.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.begin_stop();
        self.ended().await
    }
}
