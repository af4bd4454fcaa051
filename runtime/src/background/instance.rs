//! The state of one daemon or timer of one object, and the stages of its stop.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kopf_core::background::desired::InstanceState;
use kopf_core::background::life::InstanceLife;
use kopf_core::background::stopping::{StopReason, StopStage};
use tracing::{debug, info, warn};

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
    life: Mutex<InstanceLife>,
}

/// Held by all work of a daemon: when the last holder drops it, the daemon has ended.
pub(super) struct InstanceEndOnDrop {
    pub(super) instance: Arc<Instance>,
    pub(super) services: Arc<BackgroundServices>,
}

// === impl Instance ===

impl Instance {
    pub(super) fn new(handler: &Arc<BackgroundHandler>, key: &Arc<ObjectKey>) -> Self {
        handler.metrics.started();
        Self {
            handler: Arc::clone(handler),
            key: Arc::clone(key),
            signal: Signal::default(),
            life: Mutex::new(InstanceLife::begin()),
        }
    }

    pub(super) fn stop(self: &Arc<Self>) -> StopSignal {
        StopSignal::new(Arc::<Self>::clone(self))
    }

    pub(super) fn state(&self) -> InstanceState {
        self.lock().state(self.signal.reasons())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended()
    }

    /// Notes that it has ended by itself, and is not to be started again.
    pub(super) fn mark_finished(&self) {
        self.lock().mark_finished();
    }

    pub(super) fn is_finished(&self) -> bool {
        self.lock().is_finished()
    }

    /// Notes that nothing of it runs any more.
    pub(super) fn mark_ended(&self) {
        let is_first = self.lock().mark_ended();
        if is_first {
            self.handler.metrics.stopped();
        }
        self.signal.wake();
    }

    fn abandon(&self) {
        self.lock().abandon();
        self.signal.wake();
    }

    /// Waits until it has ended or is abandoned.
    pub(super) async fn ended_or_abandoned(&self) {
        loop {
            let woken = self.signal.woken();
            if !self.lock().is_waited_for() {
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

    /// Drives it through the stages of stopping, once it was asked to stop.
    pub(super) async fn drive_stop(self: Arc<Self>, services: Arc<BackgroundServices>) {
        let policy = self.handler.stopping();
        let asked = services.now();
        let polling = services.settings.background.cancellation_polling;
        loop {
            let ended = match policy.stage(polling, asked, services.now()) {
                StopStage::Graceful(left) => self.ended_within(left).await,
                StopStage::Cancelling(left) => {
                    debug!("{self} is signalled to exit by force.");
                    self.signal.raise(StopReason::Cancelled);
                    self.ended_within(left).await
                }
                StopStage::Polling(left) => {
                    let ended = self.ended_within(left).await;
                    if !ended {
                        let age = services.now().saturating_sub(asked);
                        info!(
                            "{self} has not stopped yet, {} s after it was asked",
                            age.as_secs()
                        );
                    }
                    ended
                }
                StopStage::Abandoned => {
                    self.signal.raise(StopReason::Abandoned);
                    warn!("{self} does not stop and is abandoned");
                    self.abandon();
                    services.requeue(&self.key);
                    true
                }
            };
            if ended {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, InstanceLife> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
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

// === impl InstanceEndOnDrop ===

impl Drop for InstanceEndOnDrop {
    fn drop(&mut self) {
        self.instance.mark_ended();
        self.services.requeue(&self.instance.key);
    }
}
