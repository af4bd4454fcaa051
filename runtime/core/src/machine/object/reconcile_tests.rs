//! Calls of `reconcile`, step by step.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{
    cause::detect::EventKind,
    children::reasons::ReconcileReason,
    handler::Trigger,
    machine::{
        answer::RequestFailure, memory::NewestEvent, now::Now, reconcile::StatusChanges,
        request::PatchContent,
    },
    object::{patch::apply_merge, resource_version::ResourceVersion},
};

/// The number of histories.
const SEEDS: u64 = 300;

/// One object with `reconcile`, on an API server that accepts everything.
struct Owner {
    registry: Arc<Registry>,
    persistence: Arc<Persistence>,
    rules: ReconcileRules,
    memory: ObjectMemory<Arc<Value>>,
    object: Value,
    now: Now,
    /// What was done, in words.
    done: Vec<String>,
    /// The results of the next calls; success if there is none.
    results: Vec<Outcome>,
    needs_finalizer: bool,
    pruned: Result<(), String>,
    /// The size that the last successful call saw, and whether its children were pruned.
    last_success: Option<(Value, bool)>,
    /// Edits of the size that come in the middle of the next calls.
    edits_during_calls: Vec<u64>,
    /// Whether there is a child that owner references do not reach.
    has_far_child: bool,
    /// Whether calls patch the status, which the API server rejects.
    status_rejected: bool,
    /// Whether a webhook stamps each write.
    stamped: bool,
    /// Whether calls change the size to and fro.
    flips: bool,
}

impl Owner {
    fn new(triggers: &[Trigger]) -> Self {
        Self::with(triggers.iter().map(|it| HandlerSpec::new("changed", *it)))
    }

    fn with(handlers: impl IntoIterator<Item = HandlerSpec>) -> Self {
        let spec = HandlerSpec::new("reconcile", Trigger::Reconcile);
        let specs = handlers.into_iter().chain([spec]);
        let registry = Registry::new(specs).expect("valid declarations");
        let spec = registry.handlers().last().map(Arc::clone);
        Self {
            rules: ReconcileRules {
                spec: spec.expect("it is declared"),
                interval: None,
                status: StatusChanges::Ignored,
                kinds: vec![HandlerId::new("v1/ConfigMap")],
            },
            registry: Arc::new(registry),
            persistence: Arc::default(),
            memory: ObjectMemory::default(),
            object: json!({
                "metadata": {"name": "one", "uid": "u", "resourceVersion": "1"},
                "spec": {"size": 1},
            }),
            now: Now {
                wall: Timestamp::UNIX_EPOCH,
                steady: Duration::ZERO,
                seed: 0,
                stopping: false,
                running: true,
                epoch: 0,
            },
            done: Vec::new(),
            results: Vec::new(),
            needs_finalizer: false,
            pruned: Ok(()),
            last_success: None,
            edits_during_calls: Vec::new(),
            has_far_child: false,
            status_rejected: false,
            stamped: false,
            flips: false,
        }
    }

    fn version(&self) -> u64 {
        let version = self.object["metadata"]["resourceVersion"].as_str();
        version.and_then(|it| it.parse().ok()).unwrap_or_default()
    }

    fn edit(&mut self, patch: &Value) {
        apply_merge(&mut self.object, patch);
        self.object["metadata"]["resourceVersion"] = (self.version() + 1).to_string().into();
    }

    /// An event with the newest state.
    fn event(&mut self) -> NextCall {
        self.newest(EventKind::Changed)
    }

    /// A process starts, and lists the object.
    fn restart(&mut self) -> NextCall {
        self.memory = ObjectMemory::default();
        self.newest(EventKind::Listed)
    }

    fn newest(&mut self, kind: EventKind) -> NextCall {
        let newest = NewestEvent {
            kind,
            version: Some(ResourceVersion::new(&self.version().to_string())),
            has_text: true,
        };
        self.call(BatchSummary {
            first: Some(kind),
            newest: Some(newest),
            ..BatchSummary::default()
        })
    }

    fn requeue(&mut self, reason: ReconcileReason) -> NextCall {
        let mut batch = BatchSummary {
            requeued: true,
            ..BatchSummary::default()
        };
        batch.reasons.add(reason);
        self.call(batch)
    }

    fn call(&mut self, batch: BatchSummary) -> NextCall {
        let error_delays = [Duration::from_secs(1)];
        let (registry, persistence) = (Arc::clone(&self.registry), Arc::clone(&self.persistence));
        let rules = self.rules.clone();
        let mut machine = ObjectMachine::new(ObjectRules {
            uid: "u",
            registry: &registry,
            persistence: &persistence,
            status_endpoint: false,
            selective: false,
            needs_each_event: false,
            has_background: true,
            reconcile: Some(&rules),
            lifecycle: &Lifecycle::AllAtOnce,
            default_backoff: Duration::from_secs(60),
            error_delays: &error_delays,
        });
        let mut input = ObjectInput::Batch(batch);
        let mut memory = std::mem::take(&mut self.memory);
        for _ in 0..500 {
            machine.step(&mut memory, input, &self.now);
            if let ObjectEffect::Rest(rest) = machine.effect() {
                if let KeptState::State(state) = &rest.keep {
                    memory.plan(Arc::clone(state));
                }
                self.memory = memory;
                return rest.next;
            }
            input = self.perform(&machine.effect());
        }
        panic!("the call does not end: {:?}", self.done)
    }

    fn perform(&mut self, effect: &ObjectEffect<'_, Arc<Value>>) -> ObjectInput {
        match effect {
            ObjectEffect::ParseEvent | ObjectEffect::ParseLatest => {
                ObjectInput::Parsed(Ok(Some(Arc::new(self.object.clone()))))
            }
            ObjectEffect::ParseKept(kept) => ObjectInput::Parsed(Ok(Some(Arc::clone(kept)))),
            ObjectEffect::Reconcile(_) => ObjectInput::Reconciled {
                holds: self.has_far_child,
            },
            ObjectEffect::Call { spec, .. } => {
                self.done.push(format!("called {}", spec.id));
                ObjectInput::Called(HandlerCall {
                    outcome: Outcome::Success(Value::Null),
                    writes: ObjectPatch::new(),
                    subs: Vec::new(),
                })
            }
            ObjectEffect::CallReconcile(attempt) => self.reconcile(attempt),
            ObjectEffect::PruneChildren => {
                self.done.push("pruned".to_owned());
                let success = self.last_success.as_mut();
                success.expect("only a success deletes").1 = true;
                ObjectInput::Pruned(self.pruned.clone())
            }
            ObjectEffect::Send(ObjectRequest::Patch {
                content: PatchContent::Merge(patch),
                ..
            }) if !patch["status"].is_null() && self.status_rejected => {
                self.done.push("rejected".to_owned());
                ObjectInput::Answer(Answer::Failed(RequestFailure::Status {
                    code: 422,
                    message: "no".to_owned(),
                    retry_after: None,
                }))
            }
            ObjectEffect::Send(ObjectRequest::Read(_)) => {
                ObjectInput::Answer(Answer::Object(Arc::new(self.object.clone())))
            }
            ObjectEffect::Send(ObjectRequest::Patch { content, .. }) => self.write(content),
            _ => ObjectInput::Continue,
        }
    }

    fn reconcile(&mut self, attempt: &ReconcileAttempt<'_>) -> ObjectInput {
        let reasons: Vec<_> = attempt.reasons.iter().collect();
        let size = attempt.input.body["spec"]["size"].clone();
        self.done.push(format!("reconciled {size} for {reasons:?}"));
        let is_held = finalizer::is_present(attempt.input.view(), &self.persistence.finalizer);
        let outcome = match self.results.is_empty() {
            true => Outcome::Success(Value::Null),
            false => self.results.remove(0),
        };
        let repeats = self.needs_finalizer && !is_held;
        self.has_far_child |= self.needs_finalizer && is_held;
        self.last_success = match outcome {
            Outcome::Success(_) if !repeats => Some((size, false)),
            _ => None,
        };
        if let Some(size) = self.edits_during_calls.pop() {
            self.edit(&json!({"spec": {"size": size}}));
        }
        let mut writes = ObjectPatch::new();
        if self.flips {
            let size = attempt.input.body["spec"]["size"] == 1;
            writes.merge(json!({"spec": {"size": 1 + u64::from(size)}}));
        }
        if self.status_rejected {
            writes.merge(json!({"status": {"phase": "x"}}));
        }
        ObjectInput::ReconcileCalled(ReconcileResult {
            outcome,
            writes,
            again: None,
            out_of_reach: self.needs_finalizer,
            needs_finalizer: self.needs_finalizer && !is_held,
            applied: Vec::new(),
        })
    }

    fn write(&mut self, content: &PatchContent) -> ObjectInput {
        self.done.push("wrote".to_owned());
        let mut changed = self.object.clone();
        match content {
            PatchContent::Merge(merge) => apply_merge(&mut changed, merge),
            PatchContent::Json(_) => {
                // The only edit is that of the finalizer.
                let finalizer = &self.persistence.finalizer;
                if finalizer::is_present(ObjectView::new(&changed), finalizer) {
                    finalizer::remove(&mut changed, finalizer);
                } else {
                    finalizer::insert(&mut changed, finalizer);
                }
            }
        }
        if self.stamped {
            let stamp = json!({"stamp": self.version().to_string()});
            apply_merge(&mut changed, &json!({"metadata": {"annotations": stamp}}));
        }
        self.object = changed;
        let version = (self.version() + 1).to_string();
        self.object["metadata"]["resourceVersion"] = version.into();
        ObjectInput::Answer(Answer::Object(Arc::new(self.object.clone())))
    }

    /// Lets the time of the next call come, if one is planned.
    fn pass_time(&mut self, plan: NextCall) -> NextCall {
        let (NextCall::After(delay) | NextCall::NotBefore(delay)) = plan else {
            return plan;
        };
        self.now.wall += delay;
        self.now.steady += delay;
        self.call(BatchSummary::default())
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.done)
    }
}

fn failure() -> Outcome {
    Outcome::Error(crate::outcome::HandlerFailure::Other {
        message: "no".to_owned(),
    })
}

#[test]
fn a_new_object_is_reconciled_once_and_then_rests() {
    let mut owner = Owner::new(&[]);
    assert_eq!(owner.event(), NextCall::AwaitChange);
    assert_eq!(
        owner.take(),
        ["reconciled 1 for [Created]", "pruned", "wrote"]
    );
    assert_eq!(owner.event(), NextCall::AwaitChange);
    assert_eq!(owner.take(), [""; 0]);
    owner.edit(&json!({"status": {"phase": "x"}}));
    owner.event();
    assert_eq!(owner.take(), [""; 0], "the status does not count");
    owner.edit(&json!({"spec": {"size": 2}}));
    owner.event();
    assert_eq!(owner.take(), ["reconciled 2 for [Changed]", "pruned"]);
}

#[test]
fn change_handlers_are_called_before() {
    let mut owner = Owner::new(&[Trigger::Create]);
    owner.event();
    let done = owner.take();
    assert_eq!(done[0], "called changed");
    let at = done.iter().position(|it| it.starts_with("reconciled"));
    let written = done.iter().position(|it| it == "wrote");
    assert!(at > written, "{done:?}");
}

#[test]
fn an_object_that_change_handlers_have_handled_is_reconciled_after_a_restart() {
    for trigger in [
        Trigger::Create,
        Trigger::Update,
        Trigger::Resume { deleted: false },
    ] {
        let mut owner = Owner::new(&[trigger]);
        owner.event();
        owner.take();
        owner.restart();
        let done = owner.take();
        assert!(
            done.contains(&"reconciled 1 for [Listed]".to_owned()),
            "{trigger:?}: {done:?}"
        );
    }
}

#[test]
fn a_child_calls_with_the_state_that_is_kept() {
    let mut owner = Owner::new(&[]);
    owner.event();
    owner.take();
    assert_eq!(owner.requeue(ReconcileReason::Asked), NextCall::AwaitChange);
    assert_eq!(owner.take(), ["reconciled 1 for [Asked]", "pruned"]);
}

#[test]
fn a_failed_call_prunes_nothing_and_is_repeated() {
    let mut owner = Owner::new(&[]);
    owner.results.push(failure());
    let minute = Duration::from_secs(60);
    assert_eq!(owner.event(), NextCall::After(minute));
    assert_eq!(owner.take(), ["reconciled 1 for [Created]", "wrote"]);
    owner.requeue(ReconcileReason::Asked);
    assert_eq!(owner.take(), [""; 0], "children do not shorten the delay");
    owner.now.wall = Timestamp::UNIX_EPOCH + minute;
    owner.now.steady = minute;
    assert_eq!(owner.call(BatchSummary::default()), NextCall::AwaitChange);
    let done = owner.take();
    assert_eq!(done[0], "reconciled 1 for [Asked, Failed]");
    assert_eq!(done[1..], ["pruned", "wrote"]);
}

#[test]
fn a_failed_call_waits_for_its_delay_though_a_webhook_stamps_its_record() {
    let mut owner = Owner::new(&[]);
    owner.stamped = true;
    owner.results.extend([failure(), failure()]);
    assert_eq!(owner.event(), NextCall::After(Duration::from_secs(60)));
    assert_eq!(owner.take(), ["reconciled 1 for [Created]", "wrote"]);
    owner.edit(&json!({"spec": {"size": 2}}));
    owner.event();
    let done = owner.take();
    assert_eq!(done[0], "reconciled 2 for [Changed, Failed]", "at once");
}

#[test]
fn a_failed_call_whose_record_another_client_removes_is_repeated() {
    let mut owner = Owner::new(&[]);
    owner.results.push(failure());
    owner.event();
    assert_eq!(owner.take(), ["reconciled 1 for [Created]", "wrote"]);
    owner.edit(&json!({"metadata": {"annotations": null}}));
    let plan = owner.event();
    owner.pass_time(plan);
    let done = owner.take();
    assert_eq!(done, ["reconciled 1 for [Failed]", "pruned", "wrote"]);
}

#[test]
fn a_call_whose_patch_is_rejected_is_repeated_though_its_record_is_removed() {
    let mut owner = Owner::new(&[]);
    owner.status_rejected = true;
    owner.event();
    let done = owner.take();
    let expected = ["reconciled 1 for [Created]", "pruned", "rejected", "wrote"];
    assert_eq!(done, expected);
    owner.status_rejected = false;
    owner.edit(&json!({"metadata": {"annotations": null}}));
    let plan = owner.event();
    owner.pass_time(plan);
    let done = owner.take();
    assert_eq!(done, ["reconciled 1 for [Failed]", "pruned", "wrote"]);
}

#[test]
fn a_failed_call_that_a_limit_forbids_is_not_repeated() {
    let mut owner = Owner::new(&[]);
    let spec = Arc::make_mut(&mut owner.rules.spec);
    spec.policy.timeout = Some(Duration::from_secs(100));
    owner.results.push(failure());
    owner.event();
    owner.take();
    owner.now.wall += Duration::from_secs(200);
    owner.now.steady += Duration::from_secs(200);
    assert_eq!(owner.call(BatchSummary::default()), NextCall::AwaitChange);
    assert_eq!(owner.take(), ["wrote"]);
}

#[test]
fn a_child_that_cannot_be_deleted_makes_the_call_fail() {
    let mut owner = Owner::new(&[]);
    owner.pruned = Err("it cannot be deleted".to_owned());
    assert!(matches!(owner.event(), NextCall::After(_)));
    assert_eq!(
        owner.take(),
        ["reconciled 1 for [Created]", "pruned", "wrote"]
    );
}

#[test]
fn the_finalizer_comes_before_a_child_that_owner_references_do_not_reach() {
    let mut owner = Owner::new(&[]);
    owner.needs_finalizer = true;
    owner.event();
    let done = owner.take();
    let expected = [
        "reconciled 1 for [Created]",
        "wrote",
        "reconciled 1 for [Created]",
        "pruned",
    ];
    assert_eq!(done[..4], expected);
    let view = ObjectView::new(&owner.object);
    assert!(finalizer::is_present(view, &owner.persistence.finalizer));
}

/// The handler asks for another call soon.
fn soon() -> Outcome {
    Outcome::Error(crate::outcome::HandlerFailure::Temporary {
        message: "not yet".to_owned(),
        delay: Some(Duration::from_millis(100)),
    })
}

#[test]
fn quick_edits_wait_for_nothing_though_calls_fail() {
    let mut owner = Owner::new(&[Trigger::Create, Trigger::Update]);
    for size in 1..60 {
        owner.edit(&json!({"spec": {"size": size}}));
        owner.results = vec![soon()];
        let plan = owner.event();
        let done = owner.take();
        assert_eq!(done[0], "called changed", "edit {size}: {done:?}");
        assert_eq!(plan, NextCall::After(Duration::from_millis(100)), "{size}");
        owner.pass_time(plan);
        let done = owner.take();
        let expected = format!("reconciled {size} for [Failed]");
        assert_eq!(done, [expected.as_str(), "pruned", "wrote"]);
    }
}

#[test]
fn quick_edits_wait_for_nothing_without_matching_change_handlers() {
    let of_absent_field = HandlerSpec::for_field("changed", Trigger::Field, "spec.none".into());
    for handlers in [vec![], vec![of_absent_field]] {
        let mut owner = Owner::with(handlers);
        for size in 1..60 {
            owner.edit(&json!({"spec": {"size": size}}));
            owner.results = vec![soon()];
            let plan = owner.event();
            assert_eq!(plan, NextCall::After(Duration::from_millis(100)), "{size}");
            owner.pass_time(plan);
            let done = owner.take();
            assert!(done.contains(&"pruned".to_owned()), "{size}: {done:?}");
            let plan = owner.event();
            assert_eq!(
                plan,
                NextCall::AwaitChange,
                "after the write for edit {size}"
            );
        }
    }
}

#[test]
fn a_function_that_changes_its_object_to_and_fro_is_met_with_pauses() {
    for triggers in [&[][..], &[Trigger::Create, Trigger::Update]] {
        let mut owner = Owner::new(triggers);
        owner.flips = true;
        let begun = owner.now.steady;
        let mut plan = owner.event();
        for _ in 0..100 {
            plan = match plan {
                NextCall::NotBefore(_) => owner.pass_time(plan),
                _ => owner.event(),
            };
        }
        let seconds = (owner.now.steady - begun).as_secs();
        assert!(seconds > 30, "{triggers:?}: 100 calls in {seconds} s");
    }
}

#[test]
fn children_that_change_quickly_wait_for_nothing_though_calls_fail() {
    let mut owner = Owner::new(&[Trigger::Create]);
    owner.event();
    owner.take();
    for round in 0..60 {
        owner.results = vec![soon()];
        let plan = owner.requeue(ReconcileReason::Asked);
        let done = owner.take();
        assert_eq!(
            done,
            ["reconciled 1 for [Asked]", "wrote"],
            "round {round}: {plan:?}"
        );
        owner.pass_time(plan);
        let done = owner.take();
        assert_eq!(done[0], "reconciled 1 for [Asked, Failed]");
        assert_eq!(done[1..], ["pruned", "wrote"]);
        // Another client writes what does not count.
        owner.edit(&json!({"metadata": {"annotations": {"stamp": round.to_string()}}}));
        assert_eq!(owner.event(), NextCall::AwaitChange, "round {round}");
        owner.take();
    }
}

#[test]
fn a_client_that_keeps_removing_the_record_of_a_failed_call_is_met_with_pauses() {
    let mut owner = Owner::new(&[Trigger::Create]);
    owner.event();
    let begun = owner.now.steady;
    owner.results = vec![soon()];
    let mut plan = owner.requeue(ReconcileReason::Asked);
    let mut calls = 0;
    for _ in 0..100 {
        owner.results = vec![soon()];
        let record = "kopf.zalando.org/reconcile";
        owner.edit(&json!({"metadata": {"annotations": {record: null}}}));
        plan = match plan {
            NextCall::NotBefore(_) => owner.pass_time(plan),
            _ => owner.event(),
        };
        let done = owner.take();
        calls += done.iter().filter(|it| it.starts_with("reco")).count();
    }
    let seconds = (owner.now.steady - begun).as_secs();
    assert!(calls > 30, "{calls} calls in {seconds} s");
    assert!(seconds > 30, "{calls} calls in {seconds} s");
}

#[test]
fn an_object_that_is_being_deleted_is_not_reconciled() {
    let mut owner = Owner::new(&[]);
    owner.edit(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    owner.event();
    assert_eq!(owner.take(), [""; 0]);
}

/// A number below `limit` that follows from the seed, which goes on.
fn drawn(seed: &mut u64, limit: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % limit
}

/// Plays edits, failures, kills and pauses, and checks the object at rest.
fn play(mut seed: u64) {
    let triggers: &[Trigger] = match drawn(&mut seed, 3) {
        0 => &[],
        1 => &[Trigger::Create],
        _ => &[Trigger::Update],
    };
    let mut owner = Owner::new(triggers);
    owner.needs_finalizer = drawn(&mut seed, 4) == 0;
    let mut plan = owner.event();
    for step in 0..30 {
        match drawn(&mut seed, 8) {
            0 | 1 => owner.edit(&json!({"spec": {"size": step}})),
            2 => owner.results.push(failure()),
            3 => owner.edits_during_calls.push(1000 + step),
            // The process is killed, and the next one lists the object.
            4 => plan = owner.restart(),
            5 => plan = owner.requeue(ReconcileReason::Asked),
            6 => plan = owner.event(),
            _ => plan = owner.pass_time(plan),
        }
    }
    owner.results.clear();
    owner.edits_during_calls.clear();
    plan = owner.event();
    for _ in 0..5 {
        plan = owner.pass_time(plan);
    }
    assert_eq!(plan, NextCall::AwaitChange);
    let size = owner.object["spec"]["size"].clone();
    assert_eq!(
        owner.last_success,
        Some((size, true)),
        "the last call saw the last state"
    );
    owner.take();
    owner.event();
    assert_eq!(
        owner.take(),
        [""; 0],
        "at rest nothing is called and written"
    );
}

#[test]
fn after_any_history_the_last_call_saw_the_last_state() {
    for seed in 0..SEEDS {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "the history of seed {seed}");
    }
}
