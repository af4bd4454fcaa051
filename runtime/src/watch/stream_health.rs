//! How a stream is seen from outside: whether it still moves, and what it has come to.

use std::sync::Arc;
use std::time::Duration;

use super::WatchEventType;
use crate::health::metrics::{Event, KindMetrics, Restart};
use crate::task::heartbeat::{ConditionState, Heartbeat, Heartbeats, ReadinessCondition};

/// What a stream tells about itself.
#[derive(Debug)]
pub(crate) struct StreamHealth {
    heartbeat: Heartbeat,
    condition: ReadinessCondition,
    metrics: Arc<KindMetrics>,
}

impl StreamHealth {
    /// A stream of an operator, of this name.
    pub(crate) fn new(heartbeats: &Heartbeats, metrics: Arc<KindMetrics>, name: &str) -> Self {
        Self {
            heartbeat: heartbeats.heartbeat(format!("watch of {name}")),
            condition: heartbeats.condition(name, ConditionState::Idle),
            metrics,
        }
    }

    /// A stream that nobody looks at.
    pub(crate) fn unobserved() -> Self {
        Self {
            heartbeat: Heartbeat::unobserved(),
            condition: ReadinessCondition::unobserved(),
            metrics: KindMetrics::unobserved(),
        }
    }

    /// Nothing is to be done before the operator runs.
    pub(super) fn paused(&self) {
        self.heartbeat.rest();
        self.condition.set(ConditionState::Idle);
    }

    /// Objects are about to be listed.
    pub(super) fn listing(&self) {
        self.condition.begin("not all objects have been listed yet");
    }

    /// Others decide how long this takes.
    pub(super) fn waits(&self) {
        self.heartbeat.rest();
    }

    /// All objects are known.
    pub(super) fn listed(&self) {
        self.condition.set(ConditionState::Fine);
    }

    /// The server has opened a watch.
    pub(super) fn watching(&self) {
        self.condition.set(ConditionState::Fine);
    }

    /// The server has no such objects.
    pub(super) fn absent(&self, story: String) {
        self.condition.set(ConditionState::Absent(story));
    }

    /// The server does not answer as it should.
    pub(super) fn failing(&self, story: String) {
        self.condition.set(ConditionState::Failing(story));
    }

    /// An event came.
    pub(super) fn saw(&self, event_type: WatchEventType) {
        self.metrics.saw(match event_type {
            WatchEventType::Listed => Event::Listed,
            WatchEventType::Added => Event::Added,
            WatchEventType::Modified => Event::Modified,
            WatchEventType::Deleted => Event::Deleted,
        });
    }

    /// A watch has ended; another one follows.
    pub(super) fn restarts(&self, restart: Restart) {
        self.metrics.restarted(restart);
    }

    /// Something happens again within this time.
    pub(super) fn moves_within(&self, time: Duration) {
        self.heartbeat.within(time);
    }
}
