//! One daemon or timer beside one object: whether it is there, and how it is stopped.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kopf_core::background::desired::InstanceState;
use kopf_core::background::stopping::{StopReason, StopStage};
use tracing::{info, warn};

use super::BackgroundServices;
use super::declaration::BackgroundHandler;
use crate::context::stop::{Signal, StopSignal, Stoppable};
use crate::watch::ObjectKey;

/// A daemon or timer that was started.
pub(super) struct Instance {
    pub(super) handler: Arc<BackgroundHandler>,
    pub(super) key: Arc<ObjectKey>,
    pub(super) signal: Signal,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is there; if it has said so, it will not come back.
    Running { finished: bool },
    /// It is there, but nobody waits for it.
    Abandoned { finished: bool },
    /// It is gone.
    Ended { finished: bool },
}

/// Held by everything that belongs to a daemon: when the last one is dropped, it is gone.
pub(super) struct InstanceEndOnDrop {
    pub(super) instance: Arc<Instance>,
    pub(super) services: Arc<BackgroundServices>,
}

// === impl Instance ===

impl Instance {
    pub(super) fn new(handler: &Arc<BackgroundHandler>, key: &Arc<ObjectKey>) -> Self {
        handler.metrics.came();
        Self {
            handler: Arc::clone(handler),
            key: Arc::clone(key),
            signal: Signal::default(),
            state: Mutex::new(State::Running { finished: false }),
        }
    }

    pub(super) fn stop(self: &Arc<Self>) -> StopSignal {
        StopSignal::new(Arc::<Self>::clone(self))
    }

    pub(super) fn state(&self) -> InstanceState {
        match *self.lock() {
            State::Running { .. } if self.signal.reasons().is_empty() => InstanceState::Running,
            State::Running { .. } => InstanceState::Stopping,
            State::Abandoned { .. } => InstanceState::Abandoned,
            State::Ended { finished: true } => InstanceState::Finished,
            State::Ended { finished: false } => InstanceState::Absent,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(*self.lock(), State::Ended { .. })
    }

    /// It has ended by itself, and is not to be started again.
    pub(super) fn mark_finished(&self) {
        let mut state = self.lock();
        match &mut *state {
            State::Running { finished }
            | State::Abandoned { finished }
            | State::Ended { finished } => {
                *finished = true;
            }
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.lock().is_finished()
    }

    /// Nothing of it is left.
    pub(super) fn mark_ended(&self) {
        let mut state = self.lock();
        let finished = state.is_finished();
        let former = std::mem::replace(&mut *state, State::Ended { finished });
        drop(state);
        if !matches!(former, State::Ended { .. }) {
            self.handler.metrics.left();
        }
        self.signal.wake();
    }

    fn abandon(&self) {
        let mut state = self.lock();
        if let State::Running { finished } = *state {
            *state = State::Abandoned { finished };
        }
        drop(state);
        self.signal.wake();
    }

    /// Waits until it is gone, or nobody waits for it any more.
    pub(super) async fn ended_or_abandoned(&self) {
        loop {
            let woken = self.signal.woken();
            if !matches!(*self.lock(), State::Running { .. }) {
                return;
            }
            woken.await;
        }
    }

    async fn ended_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.ended_or_abandoned())
            .await
            .is_ok()
    }

    /// Leads it, once it was asked to stop, through the stages of stopping.
    pub(super) async fn drive_stop(self: Arc<Self>, services: Arc<BackgroundServices>) {
        let policy = self.handler.stopping();
        let asked = services.now();
        let polling = services.settings.background.cancellation_polling;
        loop {
            let ended_or_abandoned = match policy.stage(polling, asked, services.now()) {
                StopStage::Graceful(left) => self.ended_within(left).await,
                StopStage::Cancelling(left) => {
                    self.signal.raise(StopReason::Cancelled);
                    self.ended_within(left).await
                }
                StopStage::Polling(left) => {
                    let ended_or_abandoned = self.ended_within(left).await;
                    if !ended_or_abandoned {
                        let age = services.now().saturating_sub(asked);
                        info!(
                            "{self} has not stopped yet, {} s after it was asked",
                            age.as_secs()
                        );
                    }
                    ended_or_abandoned
                }
                StopStage::Abandoned => {
                    self.signal.raise(StopReason::Abandoned);
                    warn!("{self} does not stop and is left to itself");
                    self.abandon();
                    services.requeue(&self.key);
                    true
                }
            };
            if ended_or_abandoned {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stoppable for Instance {
    fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} {}",
            self.handler, self.handler.resource.kind, self.key
        )
    }
}

// === impl State ===

impl State {
    fn is_finished(self) -> bool {
        match self {
            Self::Running { finished }
            | Self::Abandoned { finished }
            | Self::Ended { finished } => finished,
        }
    }
}

// === impl InstanceEndOnDrop ===

impl Drop for InstanceEndOnDrop {
    fn drop(&mut self) {
        self.instance.mark_ended();
        self.services.requeue(&self.instance.key);
    }
}
