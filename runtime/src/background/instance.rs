//! One daemon or timer beside one object: whether it is there, and how it is stopped.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kopf_core::background::desired::InstanceState;
use kopf_core::background::stopping::{StopReason, StopStage};
use tracing::{info, warn};

use super::Shared;
use super::declaration::Duty;
use crate::context::stop::{Signal, StopSignal, Stoppable};
use crate::watch::ObjectKey;

/// A daemon or timer that was started.
pub(super) struct Run {
    pub(super) duty: Arc<Duty>,
    pub(super) key: Arc<ObjectKey>,
    pub(super) signal: Signal,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is there; if it has said so, it will not come back.
    There { for_good: bool },
    /// It is there, but nobody waits for it.
    Abandoned { for_good: bool },
    /// It is gone.
    Gone { for_good: bool },
}

/// Held by everything that belongs to a daemon: when the last one is dropped, it is gone.
pub(super) struct LastOut {
    pub(super) run: Arc<Run>,
    pub(super) shared: Arc<Shared>,
}

// === impl Run ===

impl Run {
    pub(super) fn new(duty: &Arc<Duty>, key: &Arc<ObjectKey>) -> Self {
        duty.metrics.started();
        Self {
            duty: Arc::clone(duty),
            key: Arc::clone(key),
            signal: Signal::default(),
            state: Mutex::new(State::There { for_good: false }),
        }
    }

    pub(super) fn stop(self: &Arc<Self>) -> StopSignal {
        StopSignal::new(Arc::<Self>::clone(self))
    }

    pub(super) fn presence(&self) -> InstanceState {
        match *self.lock() {
            State::There { .. } if self.signal.reasons().is_empty() => InstanceState::Running,
            State::There { .. } => InstanceState::Stopping,
            State::Abandoned { .. } => InstanceState::Abandoned,
            State::Gone { for_good: true } => InstanceState::Finished,
            State::Gone { for_good: false } => InstanceState::Absent,
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(*self.lock(), State::Gone { .. })
    }

    /// It has ended by itself, and is not to be started again.
    pub(super) fn finish_for_good(&self) {
        let mut state = self.lock();
        match &mut *state {
            State::There { for_good }
            | State::Abandoned { for_good }
            | State::Gone { for_good } => {
                *for_good = true;
            }
        }
    }

    pub(super) fn is_finished_for_good(&self) -> bool {
        self.lock().is_for_good()
    }

    /// Nothing of it is left.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        let for_good = state.is_for_good();
        let former = std::mem::replace(&mut *state, State::Gone { for_good });
        drop(state);
        if !matches!(former, State::Gone { .. }) {
            self.duty.metrics.stopped();
        }
        self.signal.wake();
    }

    fn abandon(&self) {
        let mut state = self.lock();
        if let State::There { for_good } = *state {
            *state = State::Abandoned { for_good };
        }
        drop(state);
        self.signal.wake();
    }

    /// Waits until it is gone, or nobody waits for it any more.
    pub(super) async fn settled(&self) {
        loop {
            let news = self.signal.woken();
            if !matches!(*self.lock(), State::There { .. }) {
                return;
            }
            news.await;
        }
    }

    async fn settled_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.settled()).await.is_ok()
    }

    /// Leads it, once it was asked to stop, through the stages of stopping.
    pub(super) async fn see_off(self: Arc<Self>, shared: Arc<Shared>) {
        let policy = self.duty.stopping();
        let asked = shared.now();
        let polling = shared.settings.background.cancellation_polling;
        loop {
            let settled = match policy.stage(polling, asked, shared.now()) {
                StopStage::Graceful(left) => self.settled_within(left).await,
                StopStage::Cancelling(left) => {
                    self.signal.raise(StopReason::Cancelled);
                    self.settled_within(left).await
                }
                StopStage::Polling(left) => {
                    let settled = self.settled_within(left).await;
                    if !settled {
                        let age = shared.now().saturating_sub(asked);
                        info!(
                            "{self} has not stopped yet, {} s after it was asked",
                            age.as_secs()
                        );
                    }
                    settled
                }
                StopStage::Abandoned => {
                    self.signal.raise(StopReason::Abandoned);
                    warn!("{self} does not stop and is left to itself");
                    self.abandon();
                    shared.nudge(&self.key);
                    true
                }
            };
            if settled {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stoppable for Run {
    fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} {}",
            self.duty, self.duty.resource.kind, self.key
        )
    }
}

// === impl State ===

impl State {
    fn is_for_good(self) -> bool {
        match self {
            Self::There { for_good } | Self::Abandoned { for_good } | Self::Gone { for_good } => {
                for_good
            }
        }
    }
}

// === impl LastOut ===

impl Drop for LastOut {
    fn drop(&mut self) {
        self.run.leave();
        self.shared.nudge(&self.run.key);
    }
}
