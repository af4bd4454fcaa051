//! How a stream is seen from outside: whether it still moves, and what it has come to.

use std::sync::Arc;
use std::time::Duration;

use super::WatchEventType;
use crate::health::metrics::{EventLabel, KindMetrics, WatchRestart};
use crate::task::heartbeat::{Heartbeat, Heartbeats, ReadinessCondition, State};

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
            condition: heartbeats.condition(name, State::Idle),
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
        self.condition.set(State::Idle);
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
        self.condition.set(State::Fine);
    }

    /// The server has opened a watch.
    pub(super) fn watching(&self) {
        self.condition.set(State::Fine);
    }

    /// The server has no such objects.
    pub(super) fn absent(&self, story: String) {
        self.condition.set(State::Absent(story));
    }

    /// The server does not answer as it should.
    pub(super) fn failing(&self, story: String) {
        self.condition.set(State::Failing(story));
    }

    /// An event came.
    pub(super) fn saw(&self, event_type: WatchEventType) {
        self.metrics.count_event(match event_type {
            WatchEventType::Listed => EventLabel::Listed,
            WatchEventType::Added => EventLabel::Added,
            WatchEventType::Modified => EventLabel::Modified,
            WatchEventType::Deleted => EventLabel::Deleted,
        });
    }

    /// A watch has ended; another one follows.
    pub(super) fn restarts(&self, restart: WatchRestart) {
        self.metrics.count_restart(restart);
    }

    /// Something happens again within this time.
    pub(super) fn moves_within(&self, time: Duration) {
        self.heartbeat.within(time);
    }
}
