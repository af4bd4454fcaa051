//! Single histories: which handlers are called, what is written, and how often.

use kopf_core::{
    handler::{HandlerSpec, Trigger},
    lifecycle::Lifecycle,
    object::path::FieldPath,
};
use serde_json::{Value, json};

use crate::simulation::{Act, Edit, Fault, Simulation};

fn simulation(specs: Vec<HandlerSpec>, lifecycle: Lifecycle) -> Simulation {
    Simulation::new("Example", specs, lifecycle)
}

fn creators_and_updater() -> Vec<HandlerSpec> {
    vec![
        HandlerSpec::new("create1", Trigger::Create),
        HandlerSpec::new("create2", Trigger::Create),
        HandlerSpec::new("update", Trigger::Update),
    ]
}

fn turn(simulation: &mut Simulation) {
    simulation.turn(&[], Fault::None);
}

fn called(simulation: &Simulation) -> Vec<&str> {
    simulation
        .calls
        .iter()
        .map(|call| call.id.as_str())
        .collect()
}

fn annotation(simulation: &Simulation, name: &str) -> Option<Value> {
    let text =
        simulation.body["metadata"]["annotations"][format!("kopf.zalando.org/{name}")].as_str()?;
    serde_json::from_str(text).ok()
}

fn base(simulation: &Simulation) -> Option<Value> {
    annotation(simulation, "last-handled-configuration")
}

#[test]
fn a_single_handler_costs_a_single_write_and_leaves_no_notes() {
    let mut simulation = simulation(
        vec![
            HandlerSpec::new("create", Trigger::Create),
            HandlerSpec::new("update", Trigger::Update),
        ],
        Lifecycle::Asap,
    );
    turn(&mut simulation);
    assert_eq!(simulation.writes, 1);
    let annotations = simulation.body["metadata"]["annotations"].as_object();
    assert_eq!(annotations.map(|annotations| annotations.len()), Some(1));
    assert_eq!(base(&simulation), Some(json!({"spec": {"a": 0, "b": 0}})));
    simulation.edit(&Edit::Set("a", 1));
    simulation.settle();
    assert_eq!(simulation.writes, 2);
    assert_eq!(called(&simulation), ["create", "update"]);
}

#[test]
fn one_write_per_finished_handler_and_no_other() {
    let mut simulation = simulation(creators_and_updater(), Lifecycle::Asap);
    turn(&mut simulation);
    assert_eq!(
        annotation(&simulation, "create1").map(|record| record["success"].clone()),
        Some(json!(true))
    );
    assert_eq!(
        annotation(&simulation, "create2").map(|record| record["retries"].clone()),
        Some(json!(0))
    );
    assert!(annotation(&simulation, "last-seen-states").is_some());
    simulation.settle();
    assert_eq!(simulation.writes, 2);
    assert_eq!(annotation(&simulation, "last-seen-states"), None);
}

#[test]
fn all_at_once_is_one_write() {
    let mut simulation = simulation(creators_and_updater(), Lifecycle::AllAtOnce);
    simulation.settle();
    assert_eq!(called(&simulation), ["create1", "create2"]);
    assert_eq!(simulation.writes, 1);
}

#[test]
fn without_update_handlers_there_are_no_notes() {
    let mut specs = creators_and_updater();
    specs.pop();
    let mut simulation = simulation(specs, Lifecycle::Asap);
    simulation.turn(&[Edit::Set("a", 1)], Fault::None);
    assert_eq!(annotation(&simulation, "last-seen-states"), None);
    simulation.settle();
    assert_eq!(simulation.writes, 2);
    assert_eq!(base(&simulation), Some(json!({"spec": {"a": 1, "b": 0}})));
}

#[test]
fn without_a_handler_for_the_cause_only_the_state_is_written() {
    let mut simulation = simulation(
        vec![HandlerSpec::new("update", Trigger::Update)],
        Lifecycle::Asap,
    );
    simulation.settle();
    assert_eq!((simulation.writes, simulation.calls.len()), (1, 0));
    assert!(base(&simulation).is_some());
}

#[test]
fn an_edit_in_the_middle_of_a_creation_becomes_an_update_from_the_oldest_state() {
    let mut simulation = simulation(creators_and_updater(), Lifecycle::Asap);
    simulation.turn(&[Edit::Set("a", 1)], Fault::None);
    turn(&mut simulation);
    assert_eq!(called(&simulation), ["create1", "create2"]);
    assert_eq!(base(&simulation), Some(json!({"spec": {"a": 0, "b": 0}})));
    simulation.settle();
    assert_eq!(called(&simulation), ["create1", "create2", "update"]);
    assert_eq!(base(&simulation), Some(json!({"spec": {"a": 1, "b": 0}})));
    assert_eq!(simulation.writes, 3);
}

#[test]
fn only_handlers_that_missed_an_edit_are_called_again() {
    let specs = vec![
        HandlerSpec::new("update1", Trigger::Update),
        HandlerSpec::new("update2", Trigger::Update),
        HandlerSpec::for_field("field", Trigger::Field, FieldPath::from("spec.b")),
    ];
    let mut simulation = simulation(specs, Lifecycle::Asap);
    simulation.settle();
    simulation.calls.clear();
    simulation.edit(&Edit::Set("a", 1));
    simulation.turn(&[Edit::Set("a", 2)], Fault::None);
    simulation.settle();
    assert_eq!(called(&simulation), ["update1", "update2", "update1"]);
    assert_eq!(base(&simulation), Some(json!({"spec": {"a": 2, "b": 0}})));
}

#[test]
fn handlers_that_handled_a_reverted_change_are_called_again() {
    let specs = vec![
        HandlerSpec::new("update1", Trigger::Update),
        HandlerSpec::new("update2", Trigger::Update),
    ];
    let mut simulation = simulation(specs, Lifecycle::Asap);
    simulation.settle();
    simulation.edit(&Edit::Set("a", 1));
    simulation.turn(&[Edit::Set("a", 0)], Fault::None);
    simulation.settle();
    assert_eq!(called(&simulation), ["update1", "update1"]);
    assert_eq!(base(&simulation), Some(json!({"spec": {"a": 0, "b": 0}})));
}

#[test]
fn sub_handlers_do_not_use_up_the_retries_of_their_parent() {
    let mut parent = HandlerSpec::new("parent", Trigger::Update);
    parent.policy.retries = Some(1);
    let mut simulation = simulation(vec![parent], Lifecycle::Asap);
    simulation.settle();
    simulation.edit(&Edit::Set("a", 1));
    simulation.plan = [Act::RetryLater, Act::RetryNow, Act::Succeed].into();
    turn(&mut simulation);
    let record = annotation(&simulation, "parent").unwrap_or_default();
    assert_eq!(record["retries"], 0);
    assert_eq!(record["subrefs"], json!(["parent/s1", "parent/s2"]));
    simulation.settle();
    let succeeded: Vec<_> = simulation
        .calls
        .iter()
        .filter(|call| call.finished)
        .collect();
    assert_eq!(succeeded.len(), 3);
    assert_eq!(
        simulation.body["metadata"]["annotations"]
            .as_object()
            .map(|map| map.len()),
        Some(1)
    );
}

#[test]
fn resume_handlers_run_once_in_a_process() {
    let specs = vec![HandlerSpec::new(
        "resume",
        Trigger::Resume { deleted: false },
    )];
    let mut simulation = simulation(specs, Lifecycle::Asap);
    simulation.settle();
    assert_eq!(simulation.calls.len(), 0);
    simulation.plan = [Act::RetryNow].into();
    simulation.crash();
    turn(&mut simulation);
    simulation.settle();
    assert_eq!(called(&simulation), ["resume", "resume"]);
    simulation.edit(&Edit::Set("a", 1));
    simulation.settle();
    assert_eq!(simulation.calls.len(), 2);
    simulation.crash();
    simulation.settle();
    assert_eq!(simulation.calls.len(), 3);
}

#[test]
fn a_restart_over_a_handled_object_writes_nothing() {
    let mut simulation = simulation(creators_and_updater(), Lifecycle::Asap);
    simulation.settle();
    let writes = simulation.writes;
    simulation.crash();
    simulation.settle();
    assert_eq!(simulation.writes, writes);
}

#[test]
fn handlers_that_kopf_finished_are_not_called_again() {
    let mut simulation = simulation(creators_and_updater(), Lifecycle::Asap);
    simulation.kopf_turn();
    simulation.settle();
    assert_eq!(called(&simulation), ["create1", "create2"]);
    assert!(simulation.calls[0].by_kopf && !simulation.calls[1].by_kopf);
}

#[test]
fn kopf_continues_an_unfinished_cycle() {
    let mut simulation = simulation(creators_and_updater(), Lifecycle::Asap);
    turn(&mut simulation);
    simulation.kopf_turn();
    simulation.settle();
    assert_eq!(called(&simulation), ["create1", "create2"]);
    assert_eq!(annotation(&simulation, "last-seen-states"), None);
}

#[test]
fn objects_of_any_size_are_handled_within_the_limit_on_annotations() {
    let mut state = 7_u64;
    let mut noise = |length: usize| -> String {
        (0..length)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                char::from(b'A' + u8::try_from((state >> 40) % 58).unwrap_or(0))
            })
            .collect()
    };
    for length in [1_000, 130_000, 400_000] {
        let mut simulation = simulation(creators_and_updater(), Lifecycle::Asap);
        simulation.body["spec"]["blob"] = noise(length).into();
        simulation.crash();
        simulation.turn(&[Edit::Set("a", 1)], Fault::None);
        simulation.settle();
        assert_eq!(
            called(&simulation),
            ["create1", "create2", "update"],
            "{length}"
        );
        simulation.edit(&Edit::Set("b", 1));
        simulation.settle();
        assert_eq!(simulation.calls.len(), 4, "{length}");
    }
}

#[test]
fn an_edit_while_the_last_record_of_a_cycle_is_rejected_is_handled() {
    let mut simulation = simulation(
        vec![
            HandlerSpec::new("create", Trigger::Create),
            HandlerSpec::new("update", Trigger::Update),
        ],
        Lifecycle::Asap,
    );
    simulation.turn(&[], Fault::Forbidden);
    assert_eq!(called(&simulation), ["create"]);
    assert_eq!(base(&simulation), None);
    simulation.edit(&Edit::Set("a", 1));
    simulation.settle();
    assert_eq!(called(&simulation), ["create", "update"]);
    assert_eq!(base(&simulation), Some(json!({"spec": {"a": 1, "b": 0}})));
}

#[test]
fn a_handler_whose_answer_was_lost_is_not_called_again() {
    for fault in [Fault::RequestLost, Fault::AnswerLost, Fault::Forbidden] {
        let mut simulation = simulation(creators_and_updater(), Lifecycle::Asap);
        simulation.turn(&[], fault);
        simulation.settle();
        assert_eq!(called(&simulation), ["create1", "create2"], "{fault:?}");
    }
}

fn field_handlers() -> Vec<HandlerSpec> {
    let a = FieldPath::from("spec.a");
    vec![
        HandlerSpec::for_field("field", Trigger::Field, a.clone()),
        HandlerSpec::for_field("update", Trigger::Update, a),
    ]
}

/// An object at rest that gets the field, and other edits while the handlers of the field run. It
/// does not have the field when a cycle begins or ends, so that no handler matches it then.
fn with_field_for_a_moment(edits: &[Edit]) -> Simulation {
    let mut simulation = simulation(field_handlers(), Lifecycle::Asap);
    simulation.edit(&Edit::Unset("a"));
    simulation.settle();
    simulation.calls.clear();
    simulation.edit(&Edit::Set("a", 1));
    simulation.turn(edits, Fault::None);
    simulation
}

#[test]
fn a_handler_of_a_field_that_was_there_for_a_moment_is_called_for_its_removal() {
    let mut simulation = with_field_for_a_moment(&[Edit::Unset("a")]);
    assert_eq!(called(&simulation), ["field/spec.a"]);
    simulation.settle();
    assert_eq!(called(&simulation), ["field/spec.a"; 2]);
    assert_eq!(simulation.calls[1].state, json!({"spec": {"b": 0}}));
    assert_eq!(base(&simulation), Some(json!({"spec": {"b": 0}})));
}

#[test]
fn an_edit_of_another_field_does_not_hide_the_removal_of_a_field() {
    let mut simulation = with_field_for_a_moment(&[Edit::Unset("a"), Edit::Set("b", 1)]);
    simulation.settle();
    assert_eq!(called(&simulation), ["field/spec.a"; 2]);
    assert_eq!(base(&simulation), Some(json!({"spec": {"b": 1}})));
}
