//! The heartbeat, readiness and metrics of a watch stream.

use std::sync::Arc;
use std::time::Duration;

use super::WatchEventType;
use crate::health::metrics::{EventLabel, KindMetrics, WatchRestart};
use crate::task::heartbeat::{ConditionState, Heartbeat, Heartbeats, ReadinessCondition};

/// The reports of a stream about itself.
#[derive(Debug)]
pub(crate) struct StreamHealth {
    heartbeat: Heartbeat,
    condition: ReadinessCondition,
    metrics: Arc<KindMetrics>,
}

impl StreamHealth {
    pub(crate) fn new(heartbeats: &Heartbeats, metrics: Arc<KindMetrics>, name: &str) -> Self {
        Self {
            heartbeat: heartbeats.heartbeat(format!("watch of {name}")),
            condition: heartbeats.condition(name, ConditionState::Idle),
            metrics,
        }
    }

    /// A stream without liveness, readiness and metrics.
    pub(crate) fn unobserved() -> Self {
        Self {
            heartbeat: Heartbeat::unobserved(),
            condition: ReadinessCondition::unobserved(),
            metrics: KindMetrics::unobserved(),
        }
    }

    /// The operator is paused.
    pub(super) fn paused(&self) {
        self.heartbeat.rest();
        self.condition.set(ConditionState::Idle);
    }

    /// A list begins.
    pub(super) fn listing(&self) {
        self.condition.begin("not all objects have been listed yet");
    }

    /// Expects no heartbeat: another component decides how long the next step takes.
    pub(super) fn rest(&self) {
        self.heartbeat.rest();
    }

    /// The list is complete.
    pub(super) fn listed(&self) {
        self.condition.set(ConditionState::Fine);
    }

    /// The API server has opened the watch.
    pub(super) fn watching(&self) {
        self.condition.set(ConditionState::Fine);
    }

    /// The API server does not serve the kind.
    pub(super) fn unserved(&self, message: String) {
        self.condition.set(ConditionState::Absent(message));
    }

    /// A list or watch failed with an error that is not routine.
    pub(super) fn failing(&self, message: String) {
        self.condition.set(ConditionState::Failing(message));
    }

    pub(super) fn count_event(&self, event_type: WatchEventType) {
        self.metrics.count_event(match event_type {
            WatchEventType::Listed => EventLabel::Listed,
            WatchEventType::Added => EventLabel::Added,
            WatchEventType::Modified => EventLabel::Modified,
            WatchEventType::Deleted => EventLabel::Deleted,
        });
    }

    /// Counts a watch that has ended and is opened again.
    pub(super) fn count_restart(&self, restart: WatchRestart) {
        self.metrics.count_restart(restart);
    }

    /// Expects the next heartbeat within this time.
    pub(super) fn beat_within(&self, time: Duration) {
        self.heartbeat.within(time);
    }
}
