//! Readiness, kind by kind.

use serde_json::json;

use super::*;

#[track_caller]
fn check(found: &Readiness, state: ReadinessState, reason: &str, message: &str) {
    assert_eq!(
        (found.state(), found.reason(), found.message()),
        (state, reason, message)
    );
}

/// The status of a Deployment as the controller writes it; `parts` replace some of it.
fn deployment_with(parts: &[(&str, Value)]) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "generation": 2},
        "spec": {"replicas": 3, "strategy": {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": 2,
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                 "message": "Deployment has minimum availability."},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
                 "message": "ReplicaSet \"web-5d\" has successfully progressed."},
            ],
        },
    });
    for (path, value) in parts {
        *object.pointer_mut(path).expect("it is there") = value.clone();
    }
    object
}

#[test]
fn a_deployment_is_ready_when_it_has_rolled_out() {
    use ReadinessState::{Failed, Ready, Waiting};
    let of = |parts: &[(&str, Value)]| deployment(&deployment_with(parts));
    check(&of(&[]), Ready, "Available", "3 replicas are available");
    let unseen = of(&[("/metadata/generation", json!(3))]);
    let message = "its controller has not seen the newest spec yet";
    check(&unseen, Waiting, "Unobserved", message);
    let updating = of(&[("/status/updatedReplicas", json!(1))]);
    check(
        &updating,
        Waiting,
        "RollingOut",
        "1 of 3 replicas are updated",
    );
    let old = of(&[("/status/replicas", json!(5))]);
    check(
        &old,
        Waiting,
        "RollingOut",
        "2 old replicas are still there",
    );
    let down = of(&[("/status/availableReplicas", json!(2))]);
    check(
        &down,
        Waiting,
        "Unavailable",
        "2 of 3 replicas are available",
    );
    let stuck = of(&[(
        "/status/conditions/1",
        json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
               "message": "ReplicaSet \"web-5d\" has timed out progressing."}),
    )]);
    let message = "ReplicaSet \"web-5d\" has timed out progressing.";
    check(&stuck, Failed, "ProgressDeadlineExceeded", message);
    // The controller leaves out what is zero, and has not written any status at first.
    let new = json!({"metadata": {"generation": 1}, "spec": {"replicas": 1}, "status": {}});
    check(
        &deployment(&new),
        Waiting,
        "Unobserved",
        unobserved().message(),
    );
    let asleep = json!({
        "metadata": {"generation": 1}, "spec": {"replicas": 0},
        "status": {"observedGeneration": 1},
    });
    check(
        &deployment(&asleep),
        Ready,
        "Available",
        "0 replicas are available",
    );
}

#[test]
fn a_stateful_set_is_ready_when_all_replicas_have_its_revision() {
    use ReadinessState::{Ready, Waiting};
    let object = json!({
        "metadata": {"generation": 1},
        "spec": {"replicas": 2, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
        "status": {
            "observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "currentReplicas": 2,
            "updatedReplicas": 2, "currentRevision": "db-1", "updateRevision": "db-1",
            "availableReplicas": 2, "collisionCount": 0,
        },
    });
    let with = |path: &str, value: Value| {
        let mut object = object.clone();
        *object.pointer_mut(path).expect("it is there") = value;
        stateful_set(&object)
    };
    check(
        &stateful_set(&object),
        Ready,
        "Available",
        "2 replicas are ready",
    );
    let down = with("/status/readyReplicas", json!(1));
    check(&down, Waiting, "Unavailable", "1 of 2 replicas are ready");
    let other = with("/status/updateRevision", json!("db-2"));
    check(&other, Waiting, "RollingOut", "2 of 2 replicas are updated");
    let mut partitioned = object.clone();
    partitioned["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(1);
    partitioned["status"]["updateRevision"] = json!("db-2");
    partitioned["status"]["updatedReplicas"] = json!(1);
    check(
        &stateful_set(&partitioned),
        Ready,
        "Available",
        "2 replicas are ready",
    );
    partitioned["status"]["updatedReplicas"] = json!(0);
    check(
        &stateful_set(&partitioned),
        Waiting,
        "RollingOut",
        "0 of 1 replicas are updated",
    );
    let mut manual = object.clone();
    manual["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    manual["status"]["updateRevision"] = json!("db-2");
    check(
        &stateful_set(&manual),
        Ready,
        "Available",
        "2 replicas are ready",
    );
}

#[test]
fn a_daemon_set_is_ready_when_every_node_has_its_pod() {
    use ReadinessState::{Ready, Waiting};
    let object = json!({
        "metadata": {"generation": 1},
        "spec": {"updateStrategy": {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": 1, "currentNumberScheduled": 2, "desiredNumberScheduled": 2,
            "numberMisscheduled": 0, "numberReady": 2, "numberAvailable": 2,
            "updatedNumberScheduled": 2,
        },
    });
    check(
        &daemon_set(&object),
        Ready,
        "Available",
        "2 Pods are available",
    );
    let mut updating = object.clone();
    updating["status"]["updatedNumberScheduled"] = json!(1);
    check(
        &daemon_set(&updating),
        Waiting,
        "RollingOut",
        "1 of 2 Pods are updated",
    );
    let mut down = object;
    down["status"]["numberAvailable"] = json!(1);
    check(
        &daemon_set(&down),
        Waiting,
        "Unavailable",
        "1 of 2 Pods are available",
    );
}

#[test]
fn a_job_is_ready_when_it_is_complete() {
    use ReadinessState::{Failed, Ready, Waiting};
    let with = |status: Value| job(&json!({"spec": {"completions": 2}, "status": status}));
    let complete = with(json!({
        "succeeded": 2, "completionTime": "2026-01-01T00:00:00Z",
        "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"},
            {"type": "Complete", "status": "True", "reason": "CompletionsReached",
             "message": "Reached expected number of succeeded pods"},
        ],
    }));
    check(&complete, Ready, "Complete", "the Job is complete");
    let failed = with(json!({"failed": 1, "conditions": [
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
         "message": "Job has reached the specified backoff limit"},
    ]}));
    let message = "Job has reached the specified backoff limit";
    check(&failed, Failed, "BackoffLimitExceeded", message);
    let suspended = with(json!({"conditions": [{"type": "Suspended", "status": "True"}]}));
    check(&suspended, Waiting, "Suspended", "the Job is suspended");
    let running = with(json!({"active": 1, "succeeded": 1}));
    check(&running, Waiting, "Running", "1 of 2 Pods have succeeded");
}

#[test]
fn a_pod_is_ready_by_its_condition() {
    use ReadinessState::{Failed, Ready, Waiting};
    let ready = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True"},
    ]}});
    check(&pod(&ready), Ready, "PodReady", "the Pod is ready");
    let pulling = json!({"status": {
        "phase": "Pending",
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                        "message": "containers with unready status: [web]"}],
        "containerStatuses": [{"name": "web", "ready": false,
                               "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
    }});
    let message = "containers with unready status: [web]: web: ImagePullBackOff";
    check(&pod(&pulling), Waiting, "ContainersNotReady", message);
    let evicted =
        json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}});
    check(&pod(&evicted), Failed, "Evicted", "low on memory");
    let done = json!({"status": {"phase": "Succeeded", "conditions": [
        {"type": "Ready", "status": "False", "reason": "PodCompleted"},
    ]}});
    check(&pod(&done), Waiting, "PodCompleted", "the Pod is not ready");
    check(
        &pod(&json!({})),
        Waiting,
        "PodNotReady",
        "the Pod is not ready",
    );
}

#[test]
fn claims_are_ready_when_bound_and_services_when_they_have_their_address() {
    use ReadinessState::{Failed, Ready, Waiting};
    let claim = |phase: &str| persistent_volume_claim(&json!({"status": {"phase": phase}}));
    check(&claim("Bound"), Ready, "Bound", "the claim is bound");
    check(
        &claim("Pending"),
        Waiting,
        "Pending",
        "the claim is not bound yet",
    );
    assert_eq!(claim("Lost").state(), Failed);
    let internal = json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.7"}, "status": {"loadBalancer": {}}});
    check(
        &service(&internal),
        Ready,
        "Assigned",
        "a Service of type ClusterIP works at once",
    );
    let mut balanced = internal;
    balanced["spec"]["type"] = json!("LoadBalancer");
    check(
        &service(&balanced),
        Waiting,
        "Pending",
        "the load balancer has no address yet",
    );
    balanced["status"]["loadBalancer"]["ingress"] = json!([{"ip": "192.0.2.7", "ipMode": "VIP"}]);
    check(
        &service(&balanced),
        Ready,
        "Assigned",
        "the address is 192.0.2.7",
    );
}

#[test]
fn several_objects_are_as_ready_as_the_least_ready_one() {
    let ready = || Readiness::ready("A", "a");
    let waiting = || Readiness::waiting("B", "b");
    let failed = || Readiness::failed("C", "c");
    assert_eq!(Readiness::of_all([ready(), waiting(), failed()]), failed());
    assert_eq!(
        Readiness::of_all([ready(), waiting(), Readiness::waiting("D", "d")]),
        waiting()
    );
    assert_eq!(Readiness::of_all([ready(), ready()]), ready());
    assert!(Readiness::of_all([]).is_ready());
}

#[test]
fn an_object_of_another_kind_is_ready_when_its_condition_says_so() {
    let ready = |object: Value| of_kind("example.com/v1", "Gadget", &object).is_ready();
    let with_condition =
        |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
    assert!(ready(with_condition("True")));
    assert!(!ready(with_condition("False")));
    assert!(!ready(with_condition("Unknown")));
    assert!(ready(json!({"data": {}})), "there is nothing to wait for");
    let seen = |generation: u64| json!({"metadata": {"generation": 2}, "status": {"observedGeneration": generation}});
    assert!(!ready(seen(1)));
    assert!(ready(seen(2)));
    let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(of_kind("v1", "Pod", &pod), super::pod(&pod));
}
