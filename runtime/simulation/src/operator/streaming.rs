//! What the stream reads goes to the index, to the daemons and to the queue.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::Subject;
use kopf_core::children::OPERATOR_LABEL;
use kopf_core::handler::Trigger;
use kopf_core::object::ObjectView;
use kopf_core::watch::WatchEventType;
use kopf_core::watch::batch::{BatchMode, QueuedEvent};
use kopf_core::watch::known_objects::KeyedEvent;

use super::queueing::SimulatedRules;
use super::reconciling::OPERATOR_NAME;
use super::stream::SimulatedStreamStep;
use super::{
    CallPurpose, OperatorFact, SimulatedKey, SimulatedOperator, StreamRole, TimerPurpose,
    WatchPurpose, indexed_value,
};
use crate::server::{ListOptions, Verb, WatchOptions};

/// The page size of lists.
const PAGE: u32 = 2;

/// The time in which a slow queue receives an event; longer for deletions, as no list repeats them.
const SLOW_SEND: Duration = Duration::from_millis(1_500);

impl SimulatedOperator {
    pub(super) fn go_on_with_stream(&mut self, role: StreamRole, step: SimulatedStreamStep) {
        let mut step = step;
        let (kind, labels) = match (role, self.options.child_kind) {
            (StreamRole::Objects, _) => {
                let labels = self.options.setup.selectors.label_selector();
                (self.options.kind, labels)
            }
            (StreamRole::Children, Some(kind)) => {
                (kind, Some(format!("{OPERATOR_LABEL}={OPERATOR_NAME}")))
            }
            (StreamRole::Children, None) => return,
        };
        loop {
            match role {
                StreamRole::Children => self.children_listed(),
                StreamRole::Objects => self.objects_listed(),
            }
            step = match step {
                SimulatedStreamStep::Nothing => return,
                SimulatedStreamStep::List(continue_token) => {
                    let options = ListOptions {
                        labels,
                        limit: Some(PAGE),
                        continue_token,
                        ..ListOptions::default()
                    };
                    self.send(CallPurpose::List(role), kind, Verb::List(options));
                    return;
                }
                SimulatedStreamStep::Watch(version) => {
                    let options = WatchOptions {
                        labels,
                        resource_version: Some(version),
                        bookmarks: true,
                        timeout: Some(Duration::from_secs(290)),
                        ..WatchOptions::default()
                    };
                    self.watch(WatchPurpose::Stream(role), kind, options);
                    return;
                }
                SimulatedStreamStep::Wait(pause) => {
                    return self.set_timer(TimerPurpose::Stream(role), pause);
                }
                SimulatedStreamStep::Send(event) => {
                    let number = self.number();
                    let words = (self.options.run, number, "sends");
                    if self.options.behaviour.is_slow(words) {
                        let is_deletion = event.1.event_type == WatchEventType::Deleted;
                        let times = if is_deletion { 4 } else { 1 };
                        return self.set_timer(TimerPurpose::Sent(role), SLOW_SEND * times);
                    }
                    self.event_received(role, event);
                    self.stream_mut(role).sent()
                }
            };
        }
    }

    pub(super) fn event_received(&mut self, role: StreamRole, event: KeyedEvent<SimulatedKey>) {
        match role {
            StreamRole::Objects => self.received(event),
            StreamRole::Children => self.child_received(event),
        }
    }

    /// Reports that the list of objects has ended.
    fn objects_listed(&mut self) {
        if self.stream.ended_list.take().is_some() {
            self.report(OperatorFact::ListEnded);
        }
    }

    /// An event has reached the index and the queue.
    fn received(&mut self, (key, state): KeyedEvent<SimulatedKey>) {
        if state.event_type == WatchEventType::Listed
            && let Some(version) = state.version.clone()
        {
            let uid = key.uid;
            self.report(OperatorFact::Listed { uid, version });
        }
        if self.options.setup.has_index {
            self.update_index(&key, state.event_type, &state.text);
        }
        if state.event_type != WatchEventType::Deleted {
            self.background.update_latest(&key, &state.text);
            self.children.update_owner(&key, &state.text);
        }
        let mode = self.batch_mode();
        let number = self.number();
        let over_budget = self
            .options
            .behaviour
            .is_slow((self.options.run, number, "budget"))
            && mode.can_read_instead(state.event_type);
        let queued = QueuedEvent {
            event_type: state.event_type,
            version: state.version,
            text: (!over_budget).then_some(state.text),
        };
        let (rules, now) = (self.rules(), self.reading());
        self.queue
            .push(&rules, &mut self.waiting, key, now, |_, batch| {
                batch.push(queued, mode);
            });
    }

    pub(super) fn update_index(
        &mut self,
        key: &SimulatedKey,
        event_type: WatchEventType,
        object: &serde_json::Value,
    ) {
        let subject = Subject::object(ObjectView::new(object));
        let handlers = self.options.setup.registry.handlers();
        let mut indexers = handlers.iter().filter(|it| it.trigger == Trigger::Index);
        let matches = indexers.any(|it| it.matches(&subject));
        if planted!(IndexKeepsDeleted) && event_type == WatchEventType::Deleted {
            return;
        }
        if event_type == WatchEventType::Deleted || !matches {
            return self.index.discard(&key.uid);
        }
        let value = indexed_value(object);
        self.index
            .replace(&key.uid, [(format!("a={value}"), value)]);
    }

    pub(super) fn batch_mode(&self) -> BatchMode {
        match self.options.setup.needs_each_event {
            true => BatchMode::EveryEvent,
            false => BatchMode::NewestOnly,
        }
    }

    pub(super) fn rules(&self) -> SimulatedRules {
        SimulatedRules {
            needs_each_event: self.options.setup.needs_each_event,
        }
    }

    pub(super) fn requeue(&mut self, key: Arc<SimulatedKey>) {
        let (rules, now) = (self.rules(), self.reading());
        self.queue
            .push(&rules, &mut self.waiting, key, now, |_, batch| {
                batch.requeue()
            });
    }
}
