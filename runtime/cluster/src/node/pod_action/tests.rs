//! Tests of the next step of a Pod.

use serde_json::{Value, json};

use super::super::pod_status::patch_of;
use super::*;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 7);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn pod(spec: Value, annotation: Option<&str>) -> Pod {
    let mut pod = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "1"},
        "spec": {
            "schedulerName": "default-scheduler",
            "restartPolicy": "Always",
            "containers": [{"name": "main", "image": "example.com/web:1"}],
        },
        "status": {"phase": "Pending"},
    });
    if let Some(value) = annotation {
        pod["metadata"]["annotations"] = json!({super::super::POD_RESULT_ANNOTATION: value});
    }
    let Value::Object(fields) = spec else {
        panic!("the argument holds fields");
    };
    for (field, value) in fields {
        pod["spec"][field] = value;
    }
    serde_json::from_value(pod).expect("a Pod")
}

fn bound(spec: Value, annotation: Option<&str>) -> Pod {
    let mut pod = pod(spec, annotation);
    let spec = pod.spec.as_mut().expect("a spec");
    spec.node_name = Some(NODE_NAME.to_owned());
    pod
}

/// Applies the step as the API server would; panics if it is not a report.
#[track_caller]
fn report_into(pod: &mut Pod, second: i64) -> Value {
    let PodAction::Report(status) = next_action(pod, ADDRESS, at(second)) else {
        panic!("no report: {:?}", next_action(pod, ADDRESS, at(second)));
    };
    let shown = json!(status);
    pod.status = Some(*status);
    shown
}

fn condition(status: &Value, type_: &str) -> Value {
    let conditions = status["conditions"].as_array().expect("conditions");
    let found = conditions.iter().find(|it| it["type"] == type_);
    found.expect("the condition is there")["status"].clone()
}

#[test]
fn a_pending_pod_is_bound_unless_it_belongs_to_another_scheduler_or_is_held() {
    assert_eq!(
        next_action(&pod(json!({}), None), ADDRESS, at(0)),
        PodAction::Bind
    );
    for spec in [
        json!({"schedulerName": "other"}),
        json!({"nodeName": "other"}),
        json!({"schedulingGates": [{"name": "example.com/hold"}]}),
    ] {
        assert_eq!(
            next_action(&pod(spec, None), ADDRESS, at(0)),
            PodAction::Nothing
        );
    }
}

#[test]
fn a_bound_pod_becomes_ready_and_then_stays_as_it_is() {
    let mut pod = bound(json!({}), None);

    let status = report_into(&mut pod, 100);

    assert_eq!(status["phase"], "Running");
    assert_eq!(status["podIP"], "198.18.0.7");
    for type_ in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
        assert_eq!(condition(&status, type_), "True", "{type_}");
    }
    let container = &status["containerStatuses"][0];
    assert_eq!(container["ready"], true);
    assert_eq!(container["started"], true);
    let other_address = Ipv4Addr::new(198, 18, 0, 8);
    assert_eq!(
        next_action(&pod, other_address, at(200)),
        PodAction::Nothing
    );
}

#[test]
fn a_pod_with_a_readiness_gate_is_ready_when_the_gate_opens() {
    let gates = json!({"readinessGates": [{"conditionType": "example.com/open"}]});
    let mut pod = bound(gates, None);
    let status = report_into(&mut pod, 100);
    assert_eq!(condition(&status, "ContainersReady"), "True");
    assert_eq!(condition(&status, "Ready"), "False");

    let open = json!({"type": "example.com/open", "status": "True"});
    let conditions = pod.status.as_mut().and_then(|it| it.conditions.as_mut());
    conditions
        .expect("conditions")
        .push(serde_json::from_value(open).expect("a condition"));

    assert_eq!(condition(&report_into(&mut pod, 200), "Ready"), "True");
}

#[test]
fn a_pod_that_never_gets_ready_runs_until_its_annotation_changes() {
    let mut pod = bound(json!({}), Some("never-ready"));
    let status = report_into(&mut pod, 100);
    assert_eq!(status["phase"], "Running");
    assert_eq!(condition(&status, "Ready"), "False");
    assert_eq!(next_action(&pod, ADDRESS, at(200)), PodAction::Nothing);

    pod.metadata.annotations = None;
    let status = report_into(&mut pod, 300);

    assert_eq!(condition(&status, "Ready"), "True");
    let patch = patch_of(&pod, pod.status.as_ref().expect("a status"));
    let ready = &patch["status"]["conditions"][3];
    assert_eq!(ready["type"], "Ready");
    assert_eq!(
        ready.get("reason"),
        Some(&Value::Null),
        "the old reason goes"
    );
}

#[test]
fn a_pod_that_succeeds_runs_first_and_has_then_ended() {
    let mut pod = bound(json!({"restartPolicy": "OnFailure"}), Some("succeeded"));
    assert_eq!(report_into(&mut pod, 100)["phase"], "Running");

    let status = report_into(&mut pod, 101);

    assert_eq!(status["phase"], "Succeeded");
    let terminated = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(terminated["exitCode"], 0);
    assert_eq!(condition(&status, "Ready"), "False");
    assert_eq!(next_action(&pod, ADDRESS, at(200)), PodAction::Nothing);
}

#[test]
fn a_failed_pod_ends_only_if_it_never_restarts() {
    let mut never = bound(json!({"restartPolicy": "Never"}), Some("failed"));
    report_into(&mut never, 100);
    let status = report_into(&mut never, 101);
    assert_eq!(status["phase"], "Failed");
    assert_eq!(
        status["containerStatuses"][0]["state"]["terminated"]["exitCode"],
        1
    );

    let mut on_failure = bound(json!({"restartPolicy": "OnFailure"}), Some("failed"));
    report_into(&mut on_failure, 100);
    let status = report_into(&mut on_failure, 101);
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(condition(&status, "Ready"), "False");
}

#[test]
fn restarts_come_in_growing_intervals_and_never_in_a_hot_loop() {
    let mut pod = bound(json!({}), Some("failed"));
    report_into(&mut pod, 0);
    let mut time = 0;
    for (restarts, delay) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
        let status = report_into(&mut pod, time);
        assert_eq!(status["containerStatuses"][0]["restartCount"], restarts);
        assert_eq!(
            next_action(&pod, ADDRESS, at(time)),
            PodAction::Later(Duration::from_secs(delay))
        );
        time += i64::try_from(delay).expect("small");
    }
    let statuses = pod
        .status
        .as_mut()
        .and_then(|it| it.container_statuses.as_mut());
    statuses.expect("statuses")[0].restart_count = i32::MAX;
    assert_eq!(
        next_action(&pod, ADDRESS, at(4)),
        PodAction::Later(LONGEST_RESTART_DELAY + Duration::from_secs(3))
    );
}

#[test]
fn an_unknown_result_keeps_the_pod_pending_and_says_why() {
    let mut pod = bound(json!({}), Some("explode"));

    let status = report_into(&mut pod, 100);

    assert_eq!(status["phase"], "Pending");
    let waiting = &status["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "InvalidPodResult");
    let message = waiting["message"].as_str().expect("a message");
    assert!(message.contains("explode"), "{message}");
    assert_eq!(next_action(&pod, ADDRESS, at(200)), PodAction::Nothing);
}

#[test]
fn a_deleted_pod_stops_and_is_then_removed_once() {
    let mut pod = bound(json!({}), None);
    report_into(&mut pod, 100);
    let deleted = json!({
        "name": "web", "namespace": "default", "uid": "u-1",
        "deletionTimestamp": "2024-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30,
    });
    pod.metadata = serde_json::from_value(deleted).expect("metadata");

    let status = report_into(&mut pod, 101);
    assert_eq!(status["phase"], "Failed");
    assert_eq!(
        status["containerStatuses"][0]["state"]["terminated"]["exitCode"],
        STOPPED
    );
    assert_eq!(next_action(&pod, ADDRESS, at(102)), PodAction::Remove);

    pod.metadata.deletion_grace_period_seconds = Some(0);
    assert_eq!(
        next_action(&pod, ADDRESS, at(103)),
        PodAction::Nothing,
        "a finalizer holds it"
    );
}

#[test]
fn init_containers_complete_and_sidecars_run() {
    let init = json!({"initContainers": [
        {"name": "first", "image": "example.com/init:1"},
        {"name": "proxy", "image": "example.com/proxy:1", "restartPolicy": "Always"},
    ]});
    let mut pod = bound(init, None);

    let status = report_into(&mut pod, 100);

    let statuses = &status["initContainerStatuses"];
    assert_eq!(statuses[0]["state"]["terminated"]["exitCode"], 0);
    assert_eq!(statuses[0]["ready"], true);
    assert!(statuses[1]["state"]["running"].is_object(), "{status:#}");
    assert_eq!(next_action(&pod, ADDRESS, at(200)), PodAction::Nothing);
}
