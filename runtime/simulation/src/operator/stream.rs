//! The list and the watch of an operator: what the runtime does in `watch::stream`.

use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::machine::growing_pause::GrowingPause;
use kopf_core::object::ObjectView;
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::watch::known_objects::{KeyedEvent, KnownObjects, Retention};
use kopf_core::watch::stream_failure::{FailureCause, StreamFailure};
use kopf_core::watch::{ObservedState, WatchEventType};
use serde_json::Value;

use super::key::SimulatedKey;
use crate::server::{ApiAnswer, ObjectList, ServerEvent, ServerEventType};

/// Hash maps with an order that is the same in every run.
pub(crate) type SteadyHasher = BuildHasherDefault<DefaultHasher>;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The list and the watch of one kind.
pub(crate) struct SimulatedStream {
    known: KnownObjects<SimulatedKey, SteadyHasher>,
    pauses: GrowingPause,
    state: StreamPhase,
    /// The epoch in which it lists and watches; none in a pause.
    pub(crate) epoch: Option<u64>,
    /// The epoch of the last complete list.
    pub(crate) listed: Option<u64>,
    /// The version of a list that has just ended.
    pub(crate) ended_list: Option<String>,
    /// The event on its way to the queue, which takes its time.
    pub(crate) sending: Option<KeyedEvent<SimulatedKey>>,
    /// What the API server has sent meanwhile.
    arrived: VecDeque<Arrived>,
}

enum StreamPhase {
    Unlisted,
    /// The list is under way.
    Listing,
    /// The watch has this version.
    Listed(String),
}

enum Arrived {
    Page(Box<ObjectList>),
    Item(Arc<Value>),
    NextPage(String),
    ListEnd(String),
    Event(ServerEvent),
    Deletions,
    BeginWatch,
    Ended(Option<ApiAnswer>),
}

/// The next step of a stream.
pub(crate) enum SimulatedStreamStep {
    /// Lists, from this page.
    List(Option<String>),
    /// Watches from this version.
    Watch(String),
    /// Waits before the next step.
    Wait(Duration),
    /// Sends an event to the queue.
    Send(KeyedEvent<SimulatedKey>),
    /// Nothing: an answer or an event comes.
    Nothing,
}

// === impl SimulatedStream ===

impl SimulatedStream {
    pub(crate) fn new(retention: Retention) -> Self {
        Self {
            known: KnownObjects::new(retention),
            pauses: GrowingPause::new(FIRST_PAUSE, LONGEST_PAUSE),
            state: StreamPhase::Unlisted,
            epoch: None,
            listed: None,
            ended_list: None,
            sending: None,
            arrived: VecDeque::new(),
        }
    }

    /// The objects that the stream knows.
    pub(crate) fn uids(&self) -> impl Iterator<Item = &str> {
        self.known.uids()
    }

    /// A pause has begun or ended: everything is listed anew.
    pub(crate) fn restart(&mut self, epoch: Option<u64>) {
        self.known.end_list();
        self.epoch = epoch;
        self.state = StreamPhase::Unlisted;
        self.pauses.reset();
        self.arrived.clear();
        // The send is cancelled: what was not received is lost, unless it is kept.
        self.sending = None;
    }

    /// The next step, when nothing is on its way.
    pub(crate) fn begin(&mut self) -> SimulatedStreamStep {
        match &self.state {
            _ if self.epoch.is_none() => SimulatedStreamStep::Nothing,
            StreamPhase::Unlisted => {
                self.state = StreamPhase::Listing;
                self.known.begin_list();
                SimulatedStreamStep::List(None)
            }
            StreamPhase::Listing => SimulatedStreamStep::Nothing,
            StreamPhase::Listed(version) => SimulatedStreamStep::Watch(version.clone()),
        }
    }

    pub(crate) fn page_arrived(&mut self, list: Box<ObjectList>) -> SimulatedStreamStep {
        self.arrived.push_back(Arrived::Page(list));
        self.go_on()
    }

    pub(crate) fn list_failed(
        &mut self,
        retry_after: Option<Duration>,
        chance: f64,
    ) -> SimulatedStreamStep {
        self.failed(StreamFailure::List, retry_after, chance)
    }

    pub(crate) fn event_arrived(&mut self, event: ServerEvent) -> SimulatedStreamStep {
        self.arrived.push_back(Arrived::Event(event));
        self.go_on()
    }

    pub(crate) fn watch_ended(&mut self, failure: Option<ApiAnswer>) -> SimulatedStreamStep {
        self.arrived.push_back(Arrived::Ended(failure));
        self.go_on()
    }

    /// The queue has received the event.
    pub(crate) fn sent(&mut self) -> SimulatedStreamStep {
        let was_deletion = self
            .sending
            .take()
            .is_some_and(|(_, sent)| sent.event_type == WatchEventType::Deleted);
        if was_deletion && !planted!(DeletionForgottenBeforeSent) {
            self.known.deletion_sent();
        }
        self.go_on()
    }

    /// Goes on with what has arrived, up to the next event for the queue.
    fn go_on(&mut self) -> SimulatedStreamStep {
        while self.sending.is_none() {
            let Some(arrived) = self.arrived.pop_front() else {
                return SimulatedStreamStep::Nothing;
            };
            let step = match arrived {
                Arrived::Page(list) => self.take_page(*list),
                Arrived::Item(object) => self.take_state(WatchEventType::Listed, object),
                Arrived::ListEnd(version) => {
                    self.known.remove_missing();
                    self.arrived.push_front(Arrived::BeginWatch);
                    self.arrived.push_front(Arrived::Deletions);
                    self.ended_list = Some(version.clone());
                    self.state = StreamPhase::Listed(version);
                    self.listed = self.epoch;
                    SimulatedStreamStep::Nothing
                }
                Arrived::Event(event) => self.take_event(event),
                Arrived::Deletions => self.send_deletion(),
                Arrived::NextPage(token) => SimulatedStreamStep::List(Some(token)),
                Arrived::BeginWatch => self.begin(),
                Arrived::Ended(failure) => self.take_end(failure.as_ref()),
            };
            match step {
                SimulatedStreamStep::Nothing => {}
                SimulatedStreamStep::Send(event) => {
                    self.sending = Some(event.clone());
                    return SimulatedStreamStep::Send(event);
                }
                step => return step,
            }
        }
        SimulatedStreamStep::Nothing
    }

    fn take_page(&mut self, list: ObjectList) -> SimulatedStreamStep {
        self.arrived.push_front(match list.continue_token {
            Some(token) => Arrived::NextPage(token),
            None => Arrived::ListEnd(list.resource_version),
        });
        for item in list.items.into_iter().rev() {
            self.arrived.push_front(Arrived::Item(item));
        }
        SimulatedStreamStep::Nothing
    }

    fn take_event(&mut self, event: ServerEvent) -> SimulatedStreamStep {
        let version = ObjectView::new(&event.object).resource_version();
        let event_type = match event.event_type {
            ServerEventType::Error => {
                let expired = event.object["code"] == 410;
                let cause = if expired {
                    FailureCause::Expired
                } else {
                    FailureCause::Other
                };
                return self.failed(StreamFailure::InStream(cause), None, 0.5);
            }
            ServerEventType::Added => Some(WatchEventType::Added),
            ServerEventType::Modified => Some(WatchEventType::Modified),
            ServerEventType::Deleted => Some(WatchEventType::Deleted),
            ServerEventType::Bookmark => None,
        };
        self.pauses.reset();
        self.known.end_list();
        if let Some(version) = version {
            self.state = StreamPhase::Listed(version.to_owned());
        }
        match event_type {
            Some(event_type) => self.take_state(event_type, event.object),
            None => SimulatedStreamStep::Nothing,
        }
    }

    fn take_state(
        &mut self,
        event_type: WatchEventType,
        object: Arc<Value>,
    ) -> SimulatedStreamStep {
        let Some(key) = SimulatedKey::of(&object) else {
            return SimulatedStreamStep::Nothing;
        };
        let version = ObjectView::new(&object).resource_version();
        let state = ObservedState {
            event_type,
            version: version.map(ResourceVersion::new),
            text: object,
        };
        match self.known.record(key, state) {
            Some(event) => SimulatedStreamStep::Send(event),
            None if event_type == WatchEventType::Deleted => self.send_deletion(),
            None => SimulatedStreamStep::Nothing,
        }
    }

    fn send_deletion(&mut self) -> SimulatedStreamStep {
        let Some(event) = self.known.unsent_deletion() else {
            return SimulatedStreamStep::Nothing;
        };
        if planted!(DeletionForgottenBeforeSent) {
            self.known.deletion_sent();
        }
        self.arrived.push_front(Arrived::Deletions);
        SimulatedStreamStep::Send(event)
    }

    fn take_end(&mut self, failure: Option<&ApiAnswer>) -> SimulatedStreamStep {
        let Some(answer) = failure else {
            self.known.end_list();
            return self.failed(StreamFailure::Read, None, 0.5);
        };
        let cause = match answer.code {
            410 => FailureCause::Expired,
            429 | 500.. => FailureCause::Transient,
            _ => FailureCause::Other,
        };
        self.failed(StreamFailure::Open(cause), None, 0.5)
    }

    fn failed(
        &mut self,
        failure: StreamFailure,
        retry_after: Option<Duration>,
        chance: f64,
    ) -> SimulatedStreamStep {
        if !failure.interrupts_list() {
            self.known.end_list();
        }
        if failure.needs_list() {
            self.state = StreamPhase::Unlisted;
        }
        SimulatedStreamStep::Wait(self.pauses.next(retry_after, chance))
    }
}
