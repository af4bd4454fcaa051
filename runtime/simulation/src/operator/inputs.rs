//! Answers, events and timers find the part that waits for them.

use std::sync::Arc;
use std::time::Duration;

use super::requests::retry_after;
use super::{CallPurpose, SimulatedOperator, TimerPurpose, WatchPurpose};
use crate::server::{AnswerBody, ApiAnswer, ServerEvent, ServerEventType};
use crate::world::{ActorEffect, CallOutcome};

impl SimulatedOperator {
    pub(super) fn answered(&mut self, call: u64, outcome: CallOutcome) {
        match self.calls.remove(&call) {
            None => {}
            Some(CallPurpose::Coordination) => {
                let step = self.coordination.answered(&outcome, self.clock);
                self.coordinate(step);
            }
            Some(CallPurpose::Leave) => self.exit(),
            Some(CallPurpose::List(role)) => {
                let stream = self.stream_mut(role);
                let step = match outcome {
                    CallOutcome::Answered(ApiAnswer {
                        body: AnswerBody::List(list),
                        ..
                    }) => stream.page_arrived(list),
                    CallOutcome::Answered(answer) => stream.list_failed(retry_after(&answer), 0.5),
                    CallOutcome::ConnectionLost | CallOutcome::TimedOut => {
                        stream.list_failed(None, 0.5)
                    }
                };
                self.go_on_with_stream(role, step);
            }
            Some(CallPurpose::Worker(key)) => self.worker_answered(&key, outcome),
            Some(CallPurpose::Background(it)) => {
                self.go_on_with_background_write(&it, Some(outcome));
            }
        }
    }

    pub(super) fn watched(&mut self, watch: u64, event: ServerEvent) {
        match self.watches.get(&watch) {
            None => {}
            Some(&WatchPurpose::Stream(role)) => {
                if event.event_type == ServerEventType::Error {
                    self.watches.remove(&watch);
                }
                let step = self.stream_mut(role).event_arrived(event);
                self.go_on_with_stream(role, step);
            }
            Some(WatchPurpose::Coordination) => {
                if event.event_type == ServerEventType::Error {
                    self.watches.remove(&watch);
                    self.set_timer(TimerPurpose::WatchCoordination, Duration::from_secs(1));
                }
                self.coordination_event(&event);
            }
            Some(WatchPurpose::NextState(key)) => {
                let key = Arc::clone(key);
                if event.event_type == ServerEventType::Bookmark {
                    return;
                }
                self.watches.remove(&watch);
                self.effects.push(ActorEffect::CloseWatch { watch });
                let answer = match event.event_type {
                    ServerEventType::Error => ApiAnswer {
                        code: 410,
                        body: AnswerBody::Text("expired"),
                    },
                    _ => ApiAnswer {
                        code: 200,
                        body: AnswerBody::Object(event.object),
                    },
                };
                self.worker_answered(&key, CallOutcome::Answered(answer));
            }
        }
    }

    pub(super) fn watch_ended(&mut self, watch: u64, failure: Option<ApiAnswer>) {
        match self.watches.remove(&watch) {
            None => {}
            Some(WatchPurpose::Stream(role)) => {
                let step = self.stream_mut(role).watch_ended(failure);
                self.go_on_with_stream(role, step);
            }
            Some(WatchPurpose::Coordination) => {
                self.set_timer(TimerPurpose::WatchCoordination, Duration::from_secs(1));
            }
            Some(WatchPurpose::NextState(key)) => {
                let outcome = match failure {
                    Some(answer) => CallOutcome::Answered(answer),
                    None => CallOutcome::ConnectionLost,
                };
                self.worker_answered(&key, outcome);
            }
        }
    }

    pub(super) fn timer_fired(&mut self, timer: u64) {
        if let Some(key) = self.waiting.expired(timer) {
            return self.queue.timer_expired(&mut self.waiting, key);
        }
        match self.timers.remove(&timer) {
            None => {}
            Some(TimerPurpose::Stream(role)) => {
                let step = self.stream_mut(role).begin();
                self.go_on_with_stream(role, step);
            }
            Some(TimerPurpose::Sent(role)) => {
                if let Some(event) = self.stream_mut(role).sending.clone() {
                    self.event_received(role, event);
                    let step = self.stream_mut(role).sent();
                    self.go_on_with_stream(role, step);
                }
            }
            Some(TimerPurpose::Coordination) => self.go_on_with_coordination(),
            Some(TimerPurpose::CoordinationTimeout(call)) => self.time_out(call),
            Some(TimerPurpose::Grace) => self.end_grace(),
            Some(TimerPurpose::Leave) => self.exit(),
            Some(TimerPurpose::WatchCoordination) => self.watch_coordination(),
            Some(TimerPurpose::Worker(key)) => self.worker_timer(&key),
            Some(TimerPurpose::Background(it)) => {
                let writes = self
                    .background
                    .write_mut(&it)
                    .is_some_and(|it| it.is_some());
                let waits = !self
                    .calls
                    .values()
                    .any(|call| *call == CallPurpose::Background(it.clone()));
                match writes && waits {
                    true => self.go_on_with_background_write(&it, None),
                    false => self.wake_background(&it),
                }
            }
        }
    }
}
