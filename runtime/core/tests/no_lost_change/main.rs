//! A model test of the guarantee in `docs/guarantees.md`, on random histories of one object.

mod scenarios;
mod simulation;

use kopf_core::{
    cause::{Reason, Subject},
    handler::{HandlerId, HandlerSpec, Trigger, filter::TextTest},
    lifecycle::Lifecycle,
    object::{ObjectView, diff::same, path::FieldPath},
};
use proptest::prelude::*;
use serde_json::Value;
use simulation::{Act, Edit, Fault, ModelCall, Simulation};

const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

const LAST_DIGESTS: &str = "kopf.zalando.org/last-handled-packed";

/// A step of a history.
#[derive(Clone, Debug)]
enum HistoryStep {
    Edit(Edit),
    Turn(Vec<Edit>, Fault),
    Crash,
    Pass(u64),
    Kopf,
}

/// The handlers among which every history has some.
fn pool() -> Vec<Vec<HandlerSpec>> {
    let (a, b) = (FieldPath::from("spec.a"), FieldPath::from("spec.b"));
    let mut labelled = HandlerSpec::new("labelled", Trigger::Update);
    labelled.filters.labels = vec![("on".to_owned(), TextTest::Present.into())];
    vec![
        vec![HandlerSpec::new("create1", Trigger::Create)],
        vec![HandlerSpec::new("create2", Trigger::Create)],
        vec![HandlerSpec::new("update1", Trigger::Update)],
        vec![HandlerSpec::new("update2", Trigger::Update)],
        vec![HandlerSpec::for_field("field", Trigger::Field, a.clone())],
        vec![HandlerSpec::for_field("update_a", Trigger::Update, a)],
        vec![HandlerSpec::for_field("update_b", Trigger::Update, b)],
        vec![
            HandlerSpec::new("both", Trigger::Create),
            HandlerSpec::new("both", Trigger::Update),
        ],
        vec![HandlerSpec::new(
            "resume",
            Trigger::Resume { deleted: false },
        )],
        vec![
            HandlerSpec::new("resume_update", Trigger::Resume { deleted: false }),
            HandlerSpec::new("resume_update", Trigger::Update),
        ],
        vec![HandlerSpec::new("parent", Trigger::Update)],
        vec![labelled],
    ]
}

fn handlers() -> impl Strategy<Value = Vec<usize>> {
    prop::sample::subsequence((0..pool().len()).collect::<Vec<_>>(), 1..=6)
}

fn edit() -> impl Strategy<Value = Edit> {
    let field = prop_oneof![Just("a"), Just("b")];
    prop_oneof![
        6 => (field.clone(), 0u8..3).prop_map(|(field, value)| Edit::Set(field, value)),
        1 => field.prop_map(Edit::Unset),
        1 => any::<bool>().prop_map(Edit::Label),
    ]
}

fn step(kopf: bool) -> impl Strategy<Value = HistoryStep> {
    let fault = prop_oneof![
        9 => Just(Fault::None),
        1 => Just(Fault::CrashBeforeWrite),
        1 => Just(Fault::CrashAfterWrite),
        1 => Just(Fault::RequestLost),
        1 => Just(Fault::AnswerLost),
        1 => Just(Fault::Forbidden),
    ];
    let turn = (prop::collection::vec(edit(), 0..2), fault);
    prop_oneof![
        3 => edit().prop_map(HistoryStep::Edit),
        9 => turn.prop_map(|(edits, fault)| HistoryStep::Turn(edits, fault)),
        1 => Just(HistoryStep::Crash),
        1 => (1u64..20).prop_map(HistoryStep::Pass),
        u32::from(kopf) => Just(HistoryStep::Kopf),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => Just(Act::Succeed),
        1 => Just(Act::RetryNow),
        2 => Just(Act::RetryLater),
        1 => Just(Act::Fail),
    ]
}

fn lifecycle() -> impl Strategy<Value = Lifecycle> {
    prop_oneof![
        4 => Just(Lifecycle::Asap),
        1 => Just(Lifecycle::OneByOne),
        1 => Just(Lifecycle::AllAtOnce),
        1 => Just(Lifecycle::Randomized),
        1 => Just(Lifecycle::Shuffled),
    ]
}

fn play(
    kind: &str,
    handlers: &[usize],
    lifecycle: Lifecycle,
    acts: Vec<Act>,
    steps: Vec<HistoryStep>,
) -> Simulation {
    let pool = pool();
    let specs = handlers.iter().flat_map(|index| pool[*index].clone());
    let mut simulation = Simulation::new(kind, specs.collect(), lifecycle);
    simulation.plan = acts.into();
    for step in steps {
        match step {
            HistoryStep::Edit(edit) => simulation.edit(&edit),
            HistoryStep::Turn(edits, fault) => simulation.turn(&edits, fault),
            HistoryStep::Crash => simulation.crash(),
            HistoryStep::Pass(seconds) => simulation.pass(seconds),
            HistoryStep::Kopf => simulation.kopf_turn(),
        }
    }
    simulation.settle();
    simulation
}

fn has(simulation: &Simulation, id: &HandlerId, wanted: impl Fn(Trigger) -> bool) -> bool {
    let handlers = simulation.registry.handlers();
    handlers
        .iter()
        .any(|spec| spec.id == *id && wanted(spec.trigger))
}

fn scope(simulation: &Simulation, id: &HandlerId) -> FieldPath {
    let handlers = simulation.registry.handlers();
    handlers
        .iter()
        .find(|spec| spec.id == *id)
        .and_then(|spec| spec.field().cloned())
        .unwrap_or_default()
}

fn alike(path: &FieldPath, a: &Value, b: &Value) -> bool {
    same(path.resolve(a), path.resolve(b))
}

fn reacts_to_updates(trigger: Trigger) -> bool {
    matches!(trigger, Trigger::Update | Trigger::Field)
}

/// Every matching update or field handler has handled the final state.
fn no_change_is_lost(simulation: &Simulation) -> Result<(), TestCaseError> {
    let last = simulation.essence().into_value();
    let labelled = simulation.body["metadata"]["labels"].is_object();
    for spec in simulation.registry.handlers() {
        let id = &spec.id;
        if !has(simulation, id, reacts_to_updates) || (id.as_str() == "labelled" && !labelled) {
            continue;
        }
        let path = scope(simulation, id);
        let finished = |call: &&ModelCall| call.persisted && call.finished;
        let own = simulation
            .calls
            .iter()
            .filter(finished)
            .rfind(|call| call.id == *id);
        // A handler that was never called relies on the creation: on the oldest state that a
        // create handler finished on, unless every such handler finished on the final state.
        let creation = simulation
            .calls
            .iter()
            .filter(finished)
            .filter(|call| call.reason == Reason::Create);
        let handled = match (own, creation.clone().next()) {
            (Some(own), _) => Some(&own.state),
            (None, None) => simulation.created.as_ref(),
            (None, Some(oldest)) if alike(&path, &oldest.state, &last) => None,
            (None, Some(_)) => creation
                .filter(|call| {
                    !simulation
                        .calls
                        .iter()
                        .any(|later| later.id == call.id && later.reason != Reason::Create)
                })
                .find(|call| !alike(&scope(simulation, &call.id), &call.state, &last))
                .map(|call| &call.state),
        };
        if let Some(handled) = handled {
            let message = format!("{id} finished on {handled}, not {last}");
            prop_assert!(
                alike(&path, handled, &last),
                "{}:\n{}",
                message,
                simulation.history()
            );
        }
    }
    for sub in ["parent/s1", "parent/s2"] {
        let sub = HandlerId::new(sub);
        let mut calls = simulation.calls.iter().filter(|call| call.id == sub);
        let handled = calls.rfind(|call| call.persisted && call.finished);
        if let Some(handled) = handled {
            prop_assert!(
                same(Some(&handled.state), Some(&last)),
                "{} is stale:\n{}",
                sub,
                simulation.history()
            );
        }
    }
    Ok(())
}

/// A create handler is not called again once it is done.
fn creation_is_not_repeated(simulation: &Simulation) -> Result<(), TestCaseError> {
    for id in ["create1", "create2"].map(HandlerId::new) {
        let calls: Vec<&ModelCall> = simulation
            .calls
            .iter()
            .filter(|call| call.id == id)
            .collect();
        let done = calls
            .iter()
            .position(|call| call.finished && call.persisted);
        if let Some(done) = done {
            prop_assert_eq!(
                done + 1,
                calls.len(),
                "{} was repeated:\n{}",
                id,
                simulation.history()
            );
        }
        let declared = has(simulation, &id, |_| true);
        prop_assert_eq!(
            declared,
            done.is_some(),
            "{} is not done:\n{}",
            id,
            simulation.history()
        );
    }
    Ok(())
}

/// No handler is called again for a state on which its stored record is finished.
fn no_call_is_repeated(simulation: &Simulation) -> Result<(), TestCaseError> {
    let mut last: std::collections::BTreeMap<&HandlerId, &ModelCall> = Default::default();
    for call in &simulation.calls {
        let resumes = has(simulation, &call.id, |trigger| {
            matches!(trigger, Trigger::Resume { .. })
        });
        let resumed = call.initial && resumes;
        // A parent is not done before its sub-handlers are, regardless of its own calls. There is
        // no record of sub-handlers from an earlier cycle; and a handler whose filter did not
        // match during a whole cycle is called when it matches again.
        let id = call.id.as_str();
        let parent = id == "parent";
        let loses_records = id.starts_with("parent/") || id == "labelled";
        if let Some(before) = last.insert(&call.id, call)
            && before.finished
            && before.persisted
            && !before.by_kopf
            && !call.by_kopf
            && !resumed
            && !parent
            && !(loses_records && before.cycle != call.cycle)
        {
            let path = scope(simulation, &call.id);
            let repeated = alike(&path, &before.state, &call.state);
            prop_assert!(
                !repeated,
                "{} was repeated:\n{}",
                call.id,
                simulation.history()
            );
        }
    }
    Ok(())
}

/// Between cycles the object has the last handled state and no records.
fn no_records_are_left(simulation: &Simulation) -> Result<(), TestCaseError> {
    let view = ObjectView::new(&simulation.body);
    if simulation.registry.ignores(&Subject::object(view)) {
        return Ok(());
    }
    let annotations = simulation.body["metadata"]["annotations"].as_object();
    let keys: Vec<&String> = annotations.into_iter().flat_map(|map| map.keys()).collect();
    let secret = simulation.body["kind"] == "Secret";
    prop_assert_eq!(keys, [if secret { LAST_DIGESTS } else { LAST_HANDLED }]);
    let stored = simulation.persistence.baseline(view);
    prop_assert!(stored.diff(&simulation.essence()).is_empty());
    Ok(())
}

proptest! {
    #[test]
    fn every_handler_handles_the_final_state_and_no_call_is_repeated(
        handlers in handlers(),
        lifecycle in lifecycle(),
        acts in prop::collection::vec(act(), 0..20),
        steps in prop::collection::vec(step(false), 0..40),
    ) {
        let simulation = play("Example", &handlers, lifecycle, acts, steps);
        no_change_is_lost(&simulation)?;
        creation_is_not_repeated(&simulation)?;
        no_call_is_repeated(&simulation)?;
        no_records_are_left(&simulation)?;
    }

    #[test]
    fn the_same_holds_with_digests_of_states(
        handlers in handlers(),
        lifecycle in lifecycle(),
        acts in prop::collection::vec(act(), 0..20),
        steps in prop::collection::vec(step(false), 0..40),
    ) {
        let simulation = play("Secret", &handlers, lifecycle, acts, steps);
        no_change_is_lost(&simulation)?;
        creation_is_not_repeated(&simulation)?;
        no_call_is_repeated(&simulation)?;
        no_records_are_left(&simulation)?;
    }

    #[test]
    fn kopf_may_handle_the_object_in_between(
        handlers in handlers(),
        acts in prop::collection::vec(act(), 0..20),
        steps in prop::collection::vec(step(true), 0..40),
    ) {
        let simulation = play("Example", &handlers, Lifecycle::Asap, acts, steps);
        creation_is_not_repeated(&simulation)?;
        no_records_are_left(&simulation)?;
    }
}
