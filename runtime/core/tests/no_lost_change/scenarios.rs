//! Single histories, told to the end: what is called, what is written, and how often.

use kopf_core::{
    handler::{HandlerSpec, Trigger},
    lifecycle::Lifecycle,
    object::path::FieldPath,
};
use serde_json::{Value, json};

use crate::world::{Act, Crash, Edit, World};

fn world(specs: Vec<HandlerSpec>, lifecycle: Lifecycle) -> World {
    World::new("Example", specs, lifecycle)
}

fn creators_and_updater() -> Vec<HandlerSpec> {
    vec![
        HandlerSpec::new("create1", Trigger::Create),
        HandlerSpec::new("create2", Trigger::Create),
        HandlerSpec::new("update", Trigger::Update),
    ]
}

fn turn(world: &mut World) {
    world.turn(&[], Crash::Never);
}

fn called(world: &World) -> Vec<&str> {
    world.calls.iter().map(|call| call.id.as_str()).collect()
}

fn annotation(world: &World, name: &str) -> Option<Value> {
    let text =
        world.body["metadata"]["annotations"][format!("kopf.zalando.org/{name}")].as_str()?;
    serde_json::from_str(text).ok()
}

fn base(world: &World) -> Option<Value> {
    annotation(world, "last-handled-configuration")
}

#[test]
fn a_single_handler_costs_a_single_write_and_leaves_no_notes() {
    let mut world = world(
        vec![
            HandlerSpec::new("create", Trigger::Create),
            HandlerSpec::new("update", Trigger::Update),
        ],
        Lifecycle::Asap,
    );
    turn(&mut world);
    assert_eq!(world.writes, 1);
    let annotations = world.body["metadata"]["annotations"].as_object();
    assert_eq!(annotations.map(|annotations| annotations.len()), Some(1));
    assert_eq!(base(&world), Some(json!({"spec": {"a": 0, "b": 0}})));
    world.edit(&Edit::Set("a", 1));
    world.settle();
    assert_eq!(world.writes, 2);
    assert_eq!(called(&world), ["create", "update"]);
}

#[test]
fn one_write_per_finished_handler_and_none_beside() {
    let mut world = world(creators_and_updater(), Lifecycle::Asap);
    turn(&mut world);
    assert_eq!(
        annotation(&world, "create1").map(|record| record["success"].clone()),
        Some(json!(true))
    );
    assert_eq!(
        annotation(&world, "create2").map(|record| record["retries"].clone()),
        Some(json!(0))
    );
    assert!(annotation(&world, "last-seen-states").is_some());
    world.settle();
    assert_eq!(world.writes, 2);
    assert_eq!(annotation(&world, "last-seen-states"), None);
}

#[test]
fn all_at_once_is_one_write() {
    let mut world = world(creators_and_updater(), Lifecycle::AllAtOnce);
    world.settle();
    assert_eq!(called(&world), ["create1", "create2"]);
    assert_eq!(world.writes, 1);
}

#[test]
fn without_update_handlers_nothing_is_noted() {
    let mut specs = creators_and_updater();
    specs.pop();
    let mut world = world(specs, Lifecycle::Asap);
    world.turn(&[Edit::Set("a", 1)], Crash::Never);
    assert_eq!(annotation(&world, "last-seen-states"), None);
    world.settle();
    assert_eq!(world.writes, 2);
    assert_eq!(base(&world), Some(json!({"spec": {"a": 1, "b": 0}})));
}

#[test]
fn without_any_handler_for_the_cause_only_the_state_is_written() {
    let mut world = world(
        vec![HandlerSpec::new("update", Trigger::Update)],
        Lifecycle::Asap,
    );
    world.settle();
    assert_eq!((world.writes, world.calls.len()), (1, 0));
    assert!(base(&world).is_some());
}

#[test]
fn an_edit_in_the_middle_of_a_creation_becomes_an_update_from_the_oldest_state() {
    let mut world = world(creators_and_updater(), Lifecycle::Asap);
    world.turn(&[Edit::Set("a", 1)], Crash::Never);
    turn(&mut world);
    turn(&mut world);
    assert_eq!(called(&world), ["create1", "create2"]);
    assert_eq!(base(&world), Some(json!({"spec": {"a": 0, "b": 0}})));
    world.settle();
    assert_eq!(called(&world), ["create1", "create2", "update"]);
    assert_eq!(base(&world), Some(json!({"spec": {"a": 1, "b": 0}})));
    assert_eq!(world.writes, 3);
}

#[test]
fn only_those_who_missed_an_edit_are_called_again() {
    let specs = vec![
        HandlerSpec::new("update1", Trigger::Update),
        HandlerSpec::new("update2", Trigger::Update),
        HandlerSpec::for_field("field", Trigger::Field, FieldPath::from("spec.b")),
    ];
    let mut world = world(specs, Lifecycle::Asap);
    world.settle();
    world.calls.clear();
    world.edit(&Edit::Set("a", 1));
    world.turn(&[Edit::Set("a", 2)], Crash::Never);
    world.settle();
    assert_eq!(called(&world), ["update1", "update2", "update1"]);
    assert_eq!(base(&world), Some(json!({"spec": {"a": 2, "b": 0}})));
}

#[test]
fn a_change_taken_back_is_told_to_those_who_saw_it() {
    let specs = vec![
        HandlerSpec::new("update1", Trigger::Update),
        HandlerSpec::new("update2", Trigger::Update),
    ];
    let mut world = world(specs, Lifecycle::Asap);
    world.settle();
    world.edit(&Edit::Set("a", 1));
    world.turn(&[Edit::Set("a", 0)], Crash::Never);
    world.settle();
    assert_eq!(called(&world), ["update1", "update1"]);
    assert_eq!(base(&world), Some(json!({"spec": {"a": 0, "b": 0}})));
}

#[test]
fn sub_handlers_do_not_use_up_the_retries_of_their_parent() {
    let mut parent = HandlerSpec::new("parent", Trigger::Update);
    parent.policy.retries = Some(1);
    let mut world = world(vec![parent], Lifecycle::Asap);
    world.settle();
    world.edit(&Edit::Set("a", 1));
    world.plan = [Act::RetryLater, Act::RetryNow, Act::Succeed].into();
    turn(&mut world);
    let record = annotation(&world, "parent").unwrap_or_default();
    assert_eq!(record["retries"], 0);
    assert_eq!(record["subrefs"], json!(["parent/s1", "parent/s2"]));
    world.settle();
    let succeeded: Vec<_> = world.calls.iter().filter(|call| call.finished).collect();
    assert_eq!(succeeded.len(), 3);
    assert_eq!(
        world.body["metadata"]["annotations"]
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
    let mut world = world(specs, Lifecycle::Asap);
    world.settle();
    assert_eq!(world.calls.len(), 0);
    world.plan = [Act::RetryNow].into();
    world.crash();
    turn(&mut world);
    world.settle();
    assert_eq!(called(&world), ["resume", "resume"]);
    world.edit(&Edit::Set("a", 1));
    world.settle();
    assert_eq!(world.calls.len(), 2);
    world.crash();
    world.settle();
    assert_eq!(world.calls.len(), 3);
}

#[test]
fn a_restart_over_a_handled_object_writes_nothing() {
    let mut world = world(creators_and_updater(), Lifecycle::Asap);
    world.settle();
    let writes = world.writes;
    world.crash();
    world.settle();
    assert_eq!(world.writes, writes);
}

#[test]
fn what_kopf_finished_is_not_run_again() {
    let mut world = world(creators_and_updater(), Lifecycle::Asap);
    world.kopf_turn();
    world.settle();
    assert_eq!(called(&world), ["create1", "create2"]);
    assert!(world.calls[0].by_kopf && !world.calls[1].by_kopf);
}

#[test]
fn kopf_goes_on_where_we_stopped() {
    let mut world = world(creators_and_updater(), Lifecycle::Asap);
    turn(&mut world);
    world.kopf_turn();
    world.settle();
    assert_eq!(called(&world), ["create1", "create2"]);
    assert_eq!(annotation(&world, "last-seen-states"), None);
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
        let mut world = world(creators_and_updater(), Lifecycle::Asap);
        world.body["spec"]["blob"] = noise(length).into();
        world.crash();
        world.turn(&[Edit::Set("a", 1)], Crash::Never);
        world.settle();
        assert_eq!(called(&world), ["create1", "create2", "update"], "{length}");
        world.edit(&Edit::Set("b", 1));
        world.settle();
        assert_eq!(world.calls.len(), 4, "{length}");
    }
}
