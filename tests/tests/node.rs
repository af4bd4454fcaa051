//! The simulated node on a control plane with the workload controllers.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;

use kopf_cluster::node::{self, NODE_NAME, POD_RESULT_ANNOTATION, SIMULATED_LABEL};
use kopf_tests::binaries::{self, Environment};
use kopf_tests::{
    ChildProcess, ControlPlane, PrivateControlPlane, Sandbox, TestFailure, TestResult, User,
    eventually,
};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// The controllers that the harness does not run, among them those that would evict or collect the
/// Pods of a node that does not renew its Lease.
const CONTROLLERS: &str = "daemonset-controller,deployment-controller,endpointslice-controller,\
     job-controller,node-lifecycle-controller,pod-garbage-collector-controller,\
     replicaset-controller,statefulset-controller";

/// A control plane with workload controllers and a node, which all tests of this file share. It
/// ends with the process.
fn shared_plane() -> Result<Arc<ControlPlane>, TestFailure> {
    static PLANE: OnceLock<Mutex<Option<Arc<ControlPlane>>>> = OnceLock::new();
    let slot = PLANE.get_or_init(Mutex::default);
    let mut plane = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plane) = &*plane {
        return Ok(Arc::clone(plane));
    }
    let (started, outcome) = mpsc::channel();
    thread::spawn(move || {
        // The node must outlive the runtime of the test that comes first.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            match start_plane().await {
                Err(failure) => drop(started.send(Err(failure))),
                Ok((plane, client, _controllers)) => {
                    // The first test waits for it.
                    let _ = started.send(Ok(plane.handle()));
                    node::run(client, std::future::pending()).await;
                }
            }
        });
    });
    let ready = outcome.recv()??;
    *plane = Some(Arc::clone(&ready));
    Ok(ready)
}

async fn start_plane() -> Result<(PrivateControlPlane, kube::Client, ChildProcess), TestFailure> {
    let plane = PrivateControlPlane::start().await?;
    let user = User::administrator("node");
    let client = plane.client(&user).await?;
    let manager = binaries::obtain(&Environment::from_process(None))?
        .binaries
        .kube_controller_manager
        .ok_or_else(|| TestFailure::new("there is no kube-controller-manager"))?;
    let controllers = ChildProcess::command(manager)
        .arg(format!(
            "--kubeconfig={}",
            plane.kubeconfig(&user)?.display()
        ))
        .arg(format!("--controllers={CONTROLLERS}"))
        .args(["--leader-elect=false", "--secure-port=0"])
        .start()?;
    Ok((plane, client, controllers))
}

async fn open(name: &str) -> Result<Sandbox, TestFailure> {
    let plane = tokio::task::spawn_blocking(shared_plane).await??;
    Sandbox::open_on(plane, name).await
}

fn pod_spec(image: &str) -> Value {
    json!({"containers": [{"name": "main", "image": image}]})
}

/// The body of an object with a Pod template.
fn workload(replicas: i32, image: &str) -> Value {
    json!({"spec": {
        "replicas": replicas,
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(image)},
    }})
}

fn deployment(replicas: i32, image: &str) -> Value {
    let mut body = workload(replicas, image);
    let spec = body["spec"].as_object_mut().expect("an object");
    spec.remove("serviceName");
    body
}

fn has_condition(object: &DynamicObject, type_: &str, status: &str) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|it| it["type"] == type_ && it["status"] == status)
    })
}

/// What `kubectl rollout status` waits for.
fn is_rolled_out(deployment: &DynamicObject, replicas: i32) -> bool {
    let status = &deployment.data["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0) == i64::from(replicas);
    status["observedGeneration"].as_i64() == deployment.metadata.generation
        && ["replicas", "updatedReplicas", "availableReplicas"]
            .into_iter()
            .all(count)
}

#[tokio::test]
async fn a_deployment_becomes_available_rolls_over_and_shrinks_to_nothing() -> TestResult {
    let sandbox = open("deployment").await?;
    let deployments = sandbox.objects("apps/v1", "Deployment").await?;
    let pods = sandbox.objects("v1", "Pod").await?;
    deployments
        .create("web", deployment(2, "example.com/web:1"))
        .await?;
    deployments
        .wait_until("web", "available", |it| {
            is_rolled_out(it, 2) && has_condition(it, "Available", "True")
        })
        .await?;

    let image = json!({"spec": {"template": {"spec": pod_spec("example.com/web:2")}}});
    deployments.merge("web", image).await?;
    deployments
        .wait_until("web", "rolled over", |it| is_rolled_out(it, 2))
        .await?;
    eventually("only the new Pods are there", async || {
        let list = pods.api().list(&ListParams::default()).await.ok()?;
        let is_new =
            |pod: &DynamicObject| pod.data["spec"]["containers"][0]["image"] == "example.com/web:2";
        (list.items.len() == 2 && list.items.iter().all(is_new)).then_some(())
    })
    .await?;

    deployments
        .merge("web", json!({"spec": {"replicas": 0}}))
        .await?;
    eventually("no Pod is there", async || {
        let list = pods.api().list(&ListParams::default()).await.ok()?;
        list.items.is_empty().then_some(())
    })
    .await
}

#[tokio::test]
async fn the_endpoints_of_a_service_are_the_different_addresses_of_its_pods() -> TestResult {
    let sandbox = open("endpoints").await?;
    let service = json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let services = sandbox.objects("v1", "Service").await?;
    services.create("web", service).await?;
    let deployments = sandbox.objects("apps/v1", "Deployment").await?;
    deployments
        .create("web", deployment(3, "example.com/web:1"))
        .await?;
    let slices = sandbox
        .objects("discovery.k8s.io/v1", "EndpointSlice")
        .await?;

    let addresses = eventually("three endpoints are ready", async || {
        let list = slices.api().list(&ListParams::default()).await.ok()?;
        let endpoints = list.items.first()?.data["endpoints"].as_array()?.clone();
        let ready = endpoints
            .iter()
            .filter(|it| it["conditions"]["ready"] == true);
        let addresses: Vec<String> = ready.map(|it| it["addresses"][0].to_string()).collect();
        (addresses.len() == 3).then_some(addresses)
    })
    .await?;

    let different: std::collections::BTreeSet<&String> = addresses.iter().collect();
    assert_eq!(different.len(), 3, "{addresses:?}");
    assert!(
        addresses.iter().all(|it| it.starts_with("\"198.1")),
        "{addresses:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_stateful_set_and_a_daemon_set_become_ready() -> TestResult {
    let sandbox = open("sets").await?;
    let stateful = sandbox.objects("apps/v1", "StatefulSet").await?;
    stateful
        .create("db", workload(2, "example.com/db:1"))
        .await?;
    let daemons = sandbox.objects("apps/v1", "DaemonSet").await?;
    let daemon = json!({"spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": pod_spec("example.com/agent:1"),
        },
    }});
    daemons.create("agent", daemon).await?;

    stateful
        .wait_until("db", "both ready", |it| {
            it.data["status"]["readyReplicas"] == 2
        })
        .await?;
    daemons
        .wait_until("agent", "ready", |it| it.data["status"]["numberReady"] == 1)
        .await?;

    let pods = sandbox.objects("v1", "Pod").await?;
    let old = pods.get("db-0").await?.uid();
    pods.delete("db-0").await?;
    pods.wait_until("db-0", "replaced and ready", |it| {
        it.uid() != old && has_condition(it, "Ready", "True")
    })
    .await?;
    Ok(())
}

fn job(annotation: Option<&str>, restart_policy: &str, backoff_limit: i32) -> Value {
    let mut spec = pod_spec("example.com/task:1");
    spec["restartPolicy"] = restart_policy.into();
    let annotations = annotation.map(|value| json!({POD_RESULT_ANNOTATION: value}));
    json!({"spec": {
        "backoffLimit": backoff_limit,
        "template": {"metadata": {"annotations": annotations}, "spec": spec},
    }})
}

#[tokio::test]
async fn a_job_completes_by_default() -> TestResult {
    let sandbox = open("job").await?;
    let jobs = sandbox.objects("batch/v1", "Job").await?;

    jobs.create("task", job(None, "Never", 6)).await?;

    let done = jobs
        .wait_until("task", "complete", |it| {
            has_condition(it, "Complete", "True")
        })
        .await?;
    assert_eq!(done.data["status"]["succeeded"], 1);
    Ok(())
}

#[tokio::test]
async fn a_job_whose_pods_fail_fails_after_its_backoff_limit() -> TestResult {
    let sandbox = open("failure").await?;
    let jobs = sandbox.objects("batch/v1", "Job").await?;

    jobs.create("pods", job(Some("failed"), "Never", 1)).await?;
    jobs.create("restarts", job(Some("failed"), "OnFailure", 2))
        .await?;

    let failed = |it: &DynamicObject| has_condition(it, "Failed", "True");
    let pods = jobs.wait_until("pods", "failed", failed).await?;
    assert_eq!(
        pods.data["status"]["failed"], 2,
        "one Pod and one more attempt"
    );
    jobs.wait_until("restarts", "failed", failed).await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_job_takes_its_running_pods_along() -> TestResult {
    let sandbox = open("cancelled").await?;
    let jobs = sandbox.objects("batch/v1", "Job").await?;
    jobs.create("task", job(Some("running"), "Never", 0))
        .await?;
    jobs.wait_until("task", "active", |it| it.data["status"]["ready"] == 1)
        .await?;

    jobs.delete("task").await?;

    jobs.wait_gone("task").await?;
    let pods = sandbox.objects("v1", "Pod").await?;
    eventually("its Pod is gone", async || {
        let list = pods.api().list(&ListParams::default()).await.ok()?;
        list.items.is_empty().then_some(())
    })
    .await
}

#[tokio::test]
async fn a_bare_pod_follows_its_annotation() -> TestResult {
    let sandbox = open("pod").await?;
    let pods = sandbox.objects("v1", "Pod").await?;
    let body = json!({
        "metadata": {"annotations": {POD_RESULT_ANNOTATION: "never-ready"}},
        "spec": pod_spec("example.com/web:1"),
    });
    pods.create("one", body).await?;
    let other = json!({"spec": {
        "schedulerName": "other",
        "containers": [{"name": "main", "image": "example.com/web:1"}],
    }});
    pods.create("foreign", other).await?;

    let shown = pods
        .wait_until("one", "running, not ready", |it| {
            it.data["status"]["phase"] == "Running" && has_condition(it, "Ready", "False")
        })
        .await?;
    assert_eq!(shown.data["spec"]["nodeName"], NODE_NAME);
    assert_eq!(shown.data["status"]["containerStatuses"][0]["ready"], false);

    let ready = json!({"metadata": {"annotations": {POD_RESULT_ANNOTATION: "running"}}});
    pods.merge("one", ready).await?;
    let shown = pods
        .wait_until("one", "ready", |it| has_condition(it, "Ready", "True"))
        .await?;
    let conditions = shown.data["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|it| it["type"] == "Ready"));
    assert_eq!(
        ready.and_then(|it| it.get("reason")),
        None,
        "the old reason is gone"
    );

    let unknown = json!({"metadata": {"annotations": {POD_RESULT_ANNOTATION: "perhaps"}}});
    pods.merge("one", unknown).await?;
    pods.wait_until("one", "refused with a reason", |it| {
        it.data["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
            == "InvalidPodResult"
    })
    .await?;

    pods.delete("one").await?;
    pods.wait_gone("one").await?;
    let foreign = pods.get("foreign").await?;
    assert_eq!(foreign.data["spec"].get("nodeName"), None);
    Ok(())
}

#[tokio::test]
async fn the_node_is_ready_and_says_that_it_is_simulated() -> TestResult {
    let sandbox = open("registration").await?;
    let nodes = sandbox.objects("v1", "Node").await?;

    let node = nodes
        .wait_until(NODE_NAME, "ready and without taint", |it| {
            has_condition(it, "Ready", "True") && it.data["spec"].get("taints").is_none()
        })
        .await?;

    assert_eq!(node.labels()[SIMULATED_LABEL], "true");
    let description = &node.annotations()["kopf-gen.dev/description"];
    assert!(description.contains("no container runs"), "{description}");
    Ok(())
}

/// A node that a test stops.
struct RunningNode {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl RunningNode {
    fn start(sandbox: &Sandbox) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            // A dropped sender stops the node as well.
            let _ = stopped.await;
        };
        Self {
            stop,
            task: tokio::spawn(node::run(sandbox.client(), stopped)),
        }
    }

    async fn stop(self) -> TestResult {
        drop(self.stop);
        Ok(self.task.await?)
    }
}

#[tokio::test]
async fn the_next_node_goes_on_with_the_pods_of_the_last_one() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "restart").await?;
    let pods = sandbox.objects("v1", "Pod").await?;
    let body = json!({"spec": pod_spec("example.com/web:1")});
    let is_ready = |it: &DynamicObject| has_condition(it, "Ready", "True");
    let node = RunningNode::start(&sandbox);
    for name in ["kept", "deleted"] {
        pods.create(name, body.clone()).await?;
        pods.wait_until(name, "ready", is_ready).await?;
    }
    let kept = pods.get("kept").await?;

    node.stop().await?;
    pods.delete("deleted").await?;
    pods.create("new", body).await?;
    let deleted = pods.get("deleted").await?;
    assert!(
        deleted.metadata.deletion_timestamp.is_some(),
        "no node removes it"
    );
    let node = RunningNode::start(&sandbox);

    pods.wait_gone("deleted").await?;
    pods.wait_until("new", "ready", is_ready).await?;
    let now = pods.get("kept").await?;
    assert_eq!(
        now.resource_version(),
        kept.resource_version(),
        "left alone"
    );
    node.stop().await
}

#[tokio::test]
async fn the_node_survives_a_restart_of_the_api_server_and_expired_versions() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "outage").await?;
    let pods = sandbox.objects("v1", "Pod").await?;
    let body = json!({"spec": pod_spec("example.com/web:1")});
    let is_ready = |it: &DynamicObject| has_condition(it, "Ready", "True");
    let node = RunningNode::start(&sandbox);
    pods.create("before", body.clone()).await?;
    pods.wait_until("before", "ready", is_ready).await?;

    plane.expire_resource_versions().await?;

    eventually("a Pod can be created", async || {
        pods.create("after", body.clone()).await.ok()
    })
    .await?;
    pods.wait_until("after", "ready", is_ready).await?;
    node.stop().await
}
