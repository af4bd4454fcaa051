//! The smallest operator that shows how the world is used: it adds a finalizer to each object, and
//! cleans up once before it removes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::object::{ObjectView, finalizer};
use serde_json::{Value, json};

use crate::server::{
    AnswerBody, ApiAnswer, ApiRequest, Endpoint, KindId, ListOptions, ObjectList, ServerEvent,
    ServerEventType, SimulatedPatch, Verb, WatchOptions,
};
use crate::time::VirtualTime;
use crate::world::{Actor, ActorClock, ActorEffect, ActorInput, CallOutcome};

mod claims;

pub use claims::FinalizerScenario;

/// The finalizer of the operator.
const FINALIZER: &str = "kopf.test/finalizer";

/// The namespace of its objects.
const NAMESPACE: &str = "default";

/// The number of the only watch, and of the timer after which it is opened again.
const WATCH: u64 = 0;

/// The pause before something that failed is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The objects of one page.
const PAGE: u32 = 2;

/// A mistake that the operator makes on purpose, so that tests see the world find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedMistake {
    /// None.
    None,
    /// It remembers by name which objects are cleaned up.
    CleansByName,
    /// It does not notice deletions that a list reveals.
    KeepsMissing,
    /// It gives up a write whose answer is lost.
    TrustsLostWrites,
    /// It opens the watch at the old version after 410.
    KeepsExpiredVersion,
    /// It does not test the version of the object.
    WritesBlindly,
}

/// What the operator reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinalizerFact {
    /// An object with this uid is cleaned up.
    CleanedUp(String),
}

/// The operator.
#[derive(Debug)]
pub struct FinalizerOperator {
    kind: KindId,
    mistake: PlantedMistake,
    objects: BTreeMap<String, KnownState>,
    /// The names of the objects that open requests are about; none for the list.
    calls: BTreeMap<u64, Option<String>>,
    timers: BTreeMap<u64, TimerUse>,
    cleaned: BTreeSet<String>,
    /// The names on the pages of the list so far.
    listed: BTreeSet<String>,
    version: String,
    numbers: u64,
}

#[derive(Debug)]
struct KnownState {
    object: Arc<Value>,
    /// Whether a request or a timer will go on with the object.
    is_busy: bool,
}

#[derive(Debug)]
enum TimerUse {
    List,
    Watch,
    Object(String),
}

type Effects = Vec<ActorEffect<FinalizerFact>>;

// === impl PlantedMistake ===

impl PlantedMistake {
    /// All mistakes.
    pub const ALL: &'static [Self] = &[
        Self::CleansByName,
        Self::KeepsMissing,
        Self::TrustsLostWrites,
        Self::KeepsExpiredVersion,
        Self::WritesBlindly,
    ];

    /// The mistake of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|it| format!("{it:?}") == name)
    }
}

// === impl FinalizerFact ===

impl fmt::Display for FinalizerFact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::CleanedUp(uid) = self;
        write!(formatter, "cleaned up {uid}")
    }
}

// === impl FinalizerOperator ===

impl FinalizerOperator {
    /// An operator for a kind.
    #[must_use]
    pub fn new(kind: KindId, mistake: PlantedMistake) -> Self {
        Self {
            kind,
            mistake,
            objects: BTreeMap::new(),
            calls: BTreeMap::new(),
            timers: BTreeMap::new(),
            cleaned: BTreeSet::new(),
            listed: BTreeSet::new(),
            version: String::new(),
            numbers: WATCH,
        }
    }

    /// The names of the objects that it keeps in memory.
    pub fn known(&self) -> impl Iterator<Item = &str> {
        self.objects.keys().map(String::as_str)
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn request(&self, verb: Verb) -> ApiRequest {
        ApiRequest {
            user: "operator".into(),
            kind: self.kind,
            namespace: Some(NAMESPACE.into()),
            verb,
        }
    }

    fn call(&mut self, name: Option<&str>, verb: Verb) -> ActorEffect<FinalizerFact> {
        let call = self.number();
        self.calls.insert(call, name.map(str::to_owned));
        let request = self.request(verb);
        ActorEffect::Call { call, request }
    }

    fn timer(&mut self, now: VirtualTime, purpose: TimerUse) -> ActorEffect<FinalizerFact> {
        let timer = self.number();
        self.timers.insert(timer, purpose);
        let at = now.after(PAUSE);
        ActorEffect::SetTimer { timer, at }
    }

    fn list(&mut self, token: Option<String>) -> ActorEffect<FinalizerFact> {
        if token.is_none() {
            self.listed.clear();
        }
        let options = ListOptions {
            limit: Some(PAGE),
            continue_token: token,
            ..ListOptions::default()
        };
        self.call(None, Verb::List(options))
    }

    fn open_watch(&self) -> ActorEffect<FinalizerFact> {
        ActorEffect::OpenWatch {
            watch: WATCH,
            user: "operator".into(),
            kind: self.kind,
            namespace: Some(NAMESPACE.into()),
            options: WatchOptions {
                resource_version: Some(self.version.clone()),
                bookmarks: true,
                timeout: Some(Duration::from_secs(290)),
                ..WatchOptions::default()
            },
        }
    }

    fn take_page(&mut self, list: &ObjectList) -> Effects {
        let mut effects = Effects::new();
        for item in &list.items {
            self.listed.insert(name_of(item));
            self.observe(item, &mut effects);
        }
        if list.continue_token.is_some() {
            effects.push(self.list(list.continue_token.clone()));
            return effects;
        }
        if self.mistake != PlantedMistake::KeepsMissing {
            let listed = &self.listed;
            self.objects.retain(|name, _| listed.contains(name));
        }
        self.version.clone_from(&list.resource_version);
        effects.push(self.open_watch());
        effects
    }

    fn take_event(&mut self, now: VirtualTime, event: &ServerEvent) -> Effects {
        let mut effects = Effects::new();
        match event.event_type {
            ServerEventType::Error => {
                if self.mistake == PlantedMistake::KeepsExpiredVersion {
                    effects.push(self.timer(now, TimerUse::Watch));
                } else {
                    effects.push(self.timer(now, TimerUse::List));
                }
                return effects;
            }
            ServerEventType::Bookmark => {}
            ServerEventType::Added | ServerEventType::Modified => {
                self.observe(&event.object, &mut effects);
            }
            ServerEventType::Deleted => {
                self.objects.remove(&name_of(&event.object));
            }
        }
        event.version().clone_into(&mut self.version);
        effects
    }

    fn observe(&mut self, object: &Arc<Value>, effects: &mut Effects) {
        let name = name_of(object);
        let known = self.objects.entry(name.clone()).or_insert(KnownState {
            object: Arc::clone(object),
            is_busy: false,
        });
        if version_of(&known.object) > version_of(object) {
            return;
        }
        known.object = Arc::clone(object);
        self.act(&name, effects);
    }

    /// Does what an object needs next.
    fn act(&mut self, name: &str, effects: &mut Effects) {
        let Some(known) = self.objects.get_mut(name).filter(|it| !it.is_busy) else {
            return;
        };
        let object = Arc::clone(&known.object);
        let view = ObjectView::new(&object);
        let deleting = view.is_being_deleted();
        if deleting != finalizer::is_present(view, FINALIZER) {
            return;
        }
        known.is_busy = true;
        let mut wanted = Value::clone(&object);
        if !deleting {
            finalizer::insert(&mut wanted, FINALIZER);
        } else {
            finalizer::remove(&mut wanted, FINALIZER);
        }
        if deleting && self.is_unclean(name, &object) {
            let uid = text(&object, "uid").to_owned();
            effects.push(ActorEffect::Report(FinalizerFact::CleanedUp(uid)));
        }
        let metadata = &object["metadata"];
        let mut operations = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}),
            json!({"op": "test", "path": "/metadata/resourceVersion",
                "value": metadata["resourceVersion"]}),
        ];
        if self.mistake == PlantedMistake::WritesBlindly {
            operations.clear();
        }
        let wanted: Vec<&str> = ObjectView::new(&wanted).finalizers().collect();
        let path = "/metadata/finalizers";
        operations.push(json!({"op": "add", "path": path, "value": wanted}));
        let patch = Verb::Patch {
            name: name.into(),
            endpoint: Endpoint::Object,
            patch: SimulatedPatch::Json(Value::Array(operations)),
        };
        effects.push(self.call(Some(name), patch));
    }

    /// Whether an object is not cleaned up yet; from now on it is.
    fn is_unclean(&mut self, name: &str, object: &Value) -> bool {
        let key = match self.mistake {
            PlantedMistake::CleansByName => name,
            _ => text(object, "uid"),
        };
        self.cleaned.insert(key.to_owned())
    }

    fn take_list_outcome(&mut self, now: VirtualTime, outcome: &CallOutcome) -> Effects {
        match outcome {
            CallOutcome::Answered(ApiAnswer {
                body: AnswerBody::List(list),
                ..
            }) => self.take_page(list),
            _ => vec![self.timer(now, TimerUse::List)],
        }
    }

    fn take_object_outcome(
        &mut self,
        now: VirtualTime,
        name: &str,
        outcome: &CallOutcome,
    ) -> Effects {
        let mut effects = Effects::new();
        let Some(known) = self.objects.get_mut(name) else {
            return effects;
        };
        known.is_busy = false;
        match outcome {
            CallOutcome::Answered(answer) => match (answer.code, answer.as_object()) {
                (200, Some(object)) if is_gone(object) => {}
                (200, Some(object)) => self.observe(object, &mut effects),
                // The event of its deletion is on the way, or that of its successor.
                (404, _) => {}
                (409 | 422, _) => {
                    known.is_busy = true;
                    let name: Arc<str> = name.into();
                    effects.push(self.call(Some(&name.clone()), Verb::Get { name }));
                }
                _ => {
                    known.is_busy = true;
                    effects.push(self.timer(now, TimerUse::Object(name.to_owned())));
                }
            },
            CallOutcome::ConnectionLost | CallOutcome::TimedOut => {
                if self.mistake != PlantedMistake::TrustsLostWrites {
                    known.is_busy = true;
                    effects.push(self.timer(now, TimerUse::Object(name.to_owned())));
                }
            }
        }
        effects
    }
}

impl Actor for FinalizerOperator {
    type Fact = FinalizerFact;

    fn start(&mut self, _: ActorClock) -> Effects {
        vec![self.list(None)]
    }

    fn handle(&mut self, clock: ActorClock, input: ActorInput) -> Effects {
        let now = clock.now;
        match input {
            ActorInput::Answered { call, outcome } => match self.calls.remove(&call) {
                Some(Some(name)) => self.take_object_outcome(now, &name, &outcome),
                Some(None) => self.take_list_outcome(now, &outcome),
                None => Effects::new(),
            },
            ActorInput::Watched { event, .. } => self.take_event(now, &event),
            ActorInput::WatchEnded { .. } => vec![self.timer(now, TimerUse::Watch)],
            ActorInput::TimerFired { timer } => match self.timers.remove(&timer) {
                Some(TimerUse::List) => vec![self.list(None)],
                Some(TimerUse::Watch) => vec![self.open_watch()],
                Some(TimerUse::Object(name)) => {
                    let name: Arc<str> = name.into();
                    match self.objects.contains_key(&*name) {
                        true => vec![self.call(Some(&name.clone()), Verb::Get { name })],
                        false => Effects::new(),
                    }
                }
                None => Effects::new(),
            },
        }
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn name_of(object: &Value) -> String {
    text(object, "name").to_owned()
}

fn version_of(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or_default()
}

/// Whether the answer to a write is the last one about its object.
fn is_gone(object: &Value) -> bool {
    let view = ObjectView::new(object);
    view.is_being_deleted() && view.finalizers().next().is_none()
}
