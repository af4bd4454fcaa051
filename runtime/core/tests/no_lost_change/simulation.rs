//! The model: one simulated object on an API server, and an operator made of the pure functions.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use kopf_core::{
    cause::{
        Reason, Subject,
        detect::{EventKind, ObjectHistory},
    },
    handler::{HandlerId, HandlerSpec, Trigger, registry::Registry},
    lifecycle::Lifecycle,
    object::{
        ANNOTATIONS_LIMIT, ObjectView,
        diff::Baseline,
        essence::Essence,
        patch::{ObjectPatch, apply_merge, json_patch},
        path::FieldPath,
    },
    outcome::{HandlerFailure, Outcome},
    persistence::Persistence,
    progress::record::Record,
    time,
    turn::{Decision, RemainingWork, Turn, TurnInput, decide},
};
use serde_json::{Value, json};

use crate::{
    consistency::{ExpectedWrite, Freshness},
    schedule::{NextTurn, next_turn},
};

/// An edit of the object by a user.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Set(&'static str, u8),
    Unset(&'static str),
    Label(bool),
}

/// The end of a call of a handler in the model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Succeed,
    RetryNow,
    RetryLater,
    Fail,
}

/// The point of a turn at which the operator crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Never,
    BeforeWrite,
    AfterWrite,
}

/// One call of a handler.
#[derive(Clone, Debug)]
pub(crate) struct ModelCall {
    pub(crate) id: HandlerId,
    pub(crate) state: Value,
    pub(crate) creating: bool,
    pub(crate) initial: bool,
    pub(crate) finished: bool,
    pub(crate) persisted: bool,
    pub(crate) by_kopf: bool,
    /// The number of cycles that had ended before.
    pub(crate) cycle: usize,
}

/// A line of the history in the message of a failed test.
enum HistoryLine {
    Stored(Value),
    Called(HandlerId, Reason, bool),
    Crashed,
}

pub(crate) struct Simulation {
    pub(crate) body: Value,
    pub(crate) now: Timestamp,
    pub(crate) registry: Arc<Registry>,
    pub(crate) persistence: Arc<Persistence>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) plan: VecDeque<Act>,
    pub(crate) calls: Vec<ModelCall>,
    pub(crate) writes: usize,
    /// The first state that was stored as handled.
    pub(crate) created: Option<Value>,
    history: Vec<HistoryLine>,
    cycle: usize,
    version: u64,
    seed: u64,
    events: VecDeque<(EventKind, Value)>,
    process: Process,
}

#[derive(Default)]
struct Process {
    object_history: Option<ObjectHistory>,
    expected_write: Option<ExpectedWrite>,
    wake_at: Option<Timestamp>,
}

const SUBS: [&str; 2] = ["s1", "s2"];
const PARENT: &str = "parent";
const BACKOFF: Duration = Duration::from_secs(60);

impl fmt::Display for HistoryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(body) => write!(f, "  {body}"),
            Self::Called(id, reason, true) => write!(f, "{reason}: {id} finished"),
            Self::Called(id, reason, false) => write!(f, "{reason}: {id} not finished"),
            Self::Crashed => f.write_str("crash"),
        }
    }
}

impl Simulation {
    pub(crate) fn new(kind: &str, specs: Vec<HandlerSpec>, lifecycle: Lifecycle) -> Self {
        let body = json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": "o", "uid": "u", "resourceVersion": "1"},
            "spec": {"a": 0, "b": 0},
        });
        Self {
            events: VecDeque::from([(EventKind::Changed, body.clone())]),
            body,
            now: "2020-01-01T00:00:00Z".parse().expect("valid"),
            registry: Arc::new(Registry::new(specs).expect("declarations are valid")),
            persistence: Arc::new(Persistence::default()),
            lifecycle,
            plan: VecDeque::new(),
            calls: Vec::new(),
            writes: 0,
            created: None,
            history: Vec::new(),
            cycle: 0,
            version: 1,
            seed: 0,
            process: Process::default(),
        }
    }

    /// All steps so far, for the message of a failed test.
    pub(crate) fn history(&self) -> String {
        let lines: Vec<String> = self.history.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    pub(crate) fn essence(&self) -> Essence {
        let rules = self.registry.essence_rules(&[]);
        self.persistence
            .essence(ObjectView::new(&self.body), &rules)
    }

    pub(crate) fn edit(&mut self, edit: &Edit) {
        let mut body = self.body.clone();
        match edit {
            Edit::Set(field, value) => body["spec"][*field] = json!(value),
            Edit::Unset(field) => {
                FieldPath::new(["spec", field]).remove(&mut body);
                if body.get("spec").is_none() {
                    body["spec"] = json!({});
                }
            }
            Edit::Label(true) => body["metadata"]["labels"] = json!({"on": "yes"}),
            Edit::Label(false) => {
                FieldPath::from("metadata.labels").remove(&mut body);
            }
        }
        self.store_body(body);
    }

    pub(crate) fn crash(&mut self) {
        self.history.push(HistoryLine::Crashed);
        self.process = Process::default();
        self.events = VecDeque::from([(EventKind::Listed, self.body.clone())]);
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = time::after(self.now, Duration::from_secs(seconds));
        if self.process.wake_at.is_some_and(|at| at <= self.now) {
            self.wake();
        }
    }

    /// Handles one event; the API server stores `edits` before the write of the turn.
    pub(crate) fn turn(&mut self, edits: &[Edit], crash: Crash) {
        let Some((event, body)) = self.events.pop_front() else {
            return;
        };
        self.seed += 1;
        self.now = time::after(self.now, Duration::from_millis(1));
        self.process.wake_at = None;
        let version = ObjectView::new(&body).resource_version().map(str::to_owned);
        let first_call = self.calls.len();
        let (patch, ended, delay) = self.handle(event, &body, version.as_deref());
        for edit in edits {
            self.edit(edit);
        }
        if crash == Crash::BeforeWrite {
            self.crash();
            return;
        }
        let patched = !patch.is_empty();
        if patched {
            self.write(patch);
        }
        for call in &mut self.calls[first_call..] {
            call.persisted = true;
        }
        if ended && let Some(history) = &mut self.process.object_history {
            history.handled_once = true;
        }
        if let NextTurn::AfterDelay(delay) = next_turn(patched, delay) {
            self.process.wake_at = Some(time::after(self.now, delay));
        }
        if crash == Crash::AfterWrite {
            self.crash();
        }
    }

    fn handle(
        &mut self,
        event: EventKind,
        body: &Value,
        version: Option<&str>,
    ) -> (ObjectPatch, bool, Option<Duration>) {
        let nothing = (ObjectPatch::new(), false, None);
        let history = *self
            .process
            .object_history
            .get_or_insert_with(|| ObjectHistory::begin(event));
        if let Some(expected_write) = &self.process.expected_write {
            match expected_write.freshness(version, self.now) {
                Freshness::Stale | Freshness::Unclear => return nothing,
                Freshness::Fresh => self.process.expected_write = None,
            }
        }
        let view = ObjectView::new(body);
        let change = self
            .persistence
            .observe_change(view, event, history, &self.registry);
        let input = TurnInput::new(
            Arc::new(body.clone()),
            Arc::new(change),
            Arc::clone(&self.registry),
            Arc::clone(&self.persistence),
        );
        let mut patch = ObjectPatch::new();
        let (ended, delay) = match decide(&input, false, self.now) {
            Decision::Leave => (false, None),
            Decision::Finalizer(need) => {
                need.request(&self.persistence.finalizer, &mut patch);
                (false, None)
            }
            Decision::CloseReverted(tidy) => {
                patch.absorb(tidy);
                (false, None)
            }
            Decision::Handle(mut cycle) => {
                self.run(&mut cycle);
                let conclusion = cycle.conclude(self.now, &mut patch);
                if conclusion.remaining == RemainingWork::Nothing {
                    self.assert_left_alone(body, patch.clone(), history);
                }
                match conclusion.remaining {
                    RemainingWork::Handlers(delay) => (false, delay),
                    RemainingWork::FollowUp | RemainingWork::Recheck | RemainingWork::Nothing => {
                        (true, None)
                    }
                }
            }
        };
        self.persistence.purge_touch(view, &mut patch);
        (patch, ended, delay)
    }

    /// Asserts that the next turn finds nothing to do if no user edits the object.
    fn assert_left_alone(&self, body: &Value, mut patch: ObjectPatch, history: ObjectHistory) {
        self.persistence
            .purge_touch(ObjectView::new(body), &mut patch);
        let mut written = body.clone();
        apply_merge(&mut written, &Value::Object(patch.merge_patch().clone()));
        let afterwards = ObjectHistory {
            handled_once: true,
            ..history
        };
        let change = self.persistence.observe_change(
            ObjectView::new(&written),
            EventKind::Changed,
            afterwards,
            &self.registry,
        );
        let input = TurnInput::new(
            Arc::new(written),
            Arc::new(change),
            Arc::clone(&self.registry),
            Arc::clone(&self.persistence),
        );
        let decision = decide(&input, false, self.now);
        assert!(matches!(decision, Decision::Leave), "{decision:?}");
    }

    fn run(&mut self, cycle: &mut Turn) {
        for spec in cycle.due(&self.lifecycle, self.seed, self.now) {
            let input = cycle.input().clone();
            let outcome = match cycle.begin(&spec.id, self.now) {
                Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
                Ok(_) if spec.id.as_str() == PARENT => self.run_parent(cycle, &spec.id),
                Ok(_) => self.act(),
            };
            let consequence = cycle.finish(&spec.id, outcome, BACKOFF, self.now);
            self.log(&spec.id, &input, consequence.is_final());
        }
    }

    fn run_parent(&mut self, cycle: &mut Turn, parent: &HandlerId) -> Outcome {
        let input = cycle.input().clone();
        let specs =
            SUBS.map(|sub| HandlerSpec::new(parent.sub(sub), Trigger::Sub { changing: false }));
        let mut sub = cycle.sub(parent, specs, self.now);
        for spec in sub.due(&self.lifecycle, self.seed, self.now) {
            let outcome = match sub.begin(&spec.id, self.now) {
                Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
                Ok(_) => self.act(),
            };
            let consequence = sub.finish(&spec.id, outcome, BACKOFF, self.now);
            self.log(&spec.id, &input, consequence.is_final());
        }
        let outcome = sub.outcome(Value::Null, self.now);
        cycle.absorb(sub);
        outcome
    }

    fn act(&mut self) -> Outcome {
        let temporary = |delay| {
            Outcome::Error(HandlerFailure::Temporary {
                message: "later".to_owned(),
                delay,
            })
        };
        match self.plan.pop_front().unwrap_or(Act::Succeed) {
            Act::Succeed => Outcome::Success(Value::Null),
            Act::RetryNow => temporary(None),
            Act::RetryLater => temporary(Some(Duration::from_secs(10))),
            Act::Fail => Outcome::Error(HandlerFailure::Permanent {
                message: "never".to_owned(),
            }),
        }
    }

    fn log(&mut self, id: &HandlerId, input: &TurnInput, finished: bool) {
        let reason = input.change.reason;
        self.history
            .push(HistoryLine::Called(id.clone(), reason, finished));
        self.calls.push(ModelCall {
            id: id.clone(),
            state: input.change.new.as_value().clone(),
            creating: reason == Reason::Create,
            initial: input.change.initial,
            finished,
            persisted: false,
            by_kopf: false,
            cycle: self.cycle,
        });
    }

    /// Handles one event as Python Kopf does: it stores the newest state at the end, and no notes.
    pub(crate) fn kopf_turn(&mut self) {
        self.crash();
        self.events.clear();
        let (body, now) = (self.body.clone(), self.now);
        let view = ObjectView::new(&body);
        let object_history = ObjectHistory {
            noticed_by_listing: true,
            handled_once: true,
        };
        let change = self.persistence.observe_change(
            view,
            EventKind::Changed,
            object_history,
            &self.registry,
        );
        let cause = change.cause(view);
        if change.reason.is_handled() {
            let selected = self.registry.selected(&Subject::change(&cause));
            let progress = &self.persistence.progress;
            let mut patch = ObjectPatch::new();
            let record = |id: &HandlerId| progress.fetch(id, view);
            let open: Vec<_> = selected
                .iter()
                .filter(|spec| record(&spec.id).is_none_or(|record| !record.is_finished()))
                .collect();
            if let Some(spec) = open.first() {
                let begun = record(&spec.id).unwrap_or(Record::begin(change.reason, now));
                let done = Record {
                    stopped: Some(time::to_micros(now)),
                    success: true,
                    retries: begun.retries + 1,
                    ..begun
                };
                progress.store(&spec.id, &done, view, &mut patch);
                self.calls.push(ModelCall {
                    id: spec.id.clone(),
                    state: change.new.as_value().clone(),
                    creating: change.reason == Reason::Create,
                    initial: false,
                    finished: true,
                    persisted: true,
                    by_kopf: true,
                    cycle: self.cycle,
                });
            }
            if open.len() <= 1 {
                for id in self.registry.owned_ids() {
                    let subrefs = record(&id).map(|record| record.subrefs).unwrap_or_default();
                    for id in subrefs.iter().chain([&id]) {
                        progress.purge(id, view, &mut patch);
                    }
                }
                let newest = Baseline::Known(change.new.clone());
                self.persistence.diffbase.store(&newest, view, &mut patch);
            }
            self.persistence.purge_touch(view, &mut patch);
            self.write(patch);
        }
        self.crash();
    }

    /// Handles events without edits, crashes and failures until none is left.
    pub(crate) fn settle(&mut self) {
        self.plan.clear();
        for _ in 0..300 {
            if !self.events.is_empty() {
                self.turn(&[], Crash::Never);
            } else if let Some(at) = self.process.wake_at {
                self.now = self.now.max(at);
                self.wake();
            } else {
                return;
            }
        }
        panic!("the operator does not settle:\n{}", self.history());
    }

    fn wake(&mut self) {
        self.process.wake_at = None;
        let mut patch = ObjectPatch::new();
        let value = time::format(self.now);
        self.persistence
            .progress
            .touch(Some(&value), ObjectView::new(&self.body), &mut patch);
        self.write(patch);
    }

    fn write(&mut self, patch: ObjectPatch) {
        let requests = patch.into_requests(false);
        if let Some(merge) = requests.body {
            let mut body = self.body.clone();
            apply_merge(&mut body, &merge);
            self.store_body(body);
        }
        let mut edited = self.body.clone();
        for edit in &requests.edits {
            edit(&mut edited);
        }
        if json_patch(&self.body, &edited).is_some() {
            self.store_body(edited);
        }
        self.writes += 1;
        if let Baseline::Known(stored) = self.persistence.baseline(ObjectView::new(&self.body)) {
            self.created.get_or_insert(stored.into_value());
        }
        let annotations = self.body["metadata"]["annotations"].as_object();
        if annotations.is_some_and(|annotations| annotations.len() == 1) {
            self.cycle += 1;
        }
        self.process.expected_write = Some(ExpectedWrite {
            version: self.version.to_string(),
            deadline: time::after(self.now, Duration::from_secs(5)),
        });
    }

    /// Stores a body as the API server does: a write that changes nothing makes no event and no
    /// new resource version, and the size of annotations is limited.
    fn store_body(&mut self, mut body: Value) {
        if body == self.body {
            return;
        }
        let annotations = body["metadata"]["annotations"].as_object();
        let size: usize = annotations
            .into_iter()
            .flatten()
            .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
            .sum();
        assert!(
            size <= ANNOTATIONS_LIMIT,
            "the API server rejects {size} bytes of annotations"
        );
        self.version += 1;
        body["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.body = body;
        self.history.push(HistoryLine::Stored(self.body.clone()));
        self.events
            .push_back((EventKind::Changed, self.body.clone()));
    }
}
