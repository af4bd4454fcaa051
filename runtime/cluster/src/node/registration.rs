//! Keeps the Node and its Lease: without them the controllers take the Pods for lost.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::{
    Error, FIELD_MANAGER, NODE_NAME, POD_RESULT_ANNOTATION, SIMULATED_LABEL, now, request,
};

/// The same as a kubelet's: the controller manager waits for four renewals.
const RENEWAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i64 = 40;

/// A kubelet without news reports its status this often; in between, its Lease shows that it runs.
const HEARTBEAT_SECONDS: i64 = 300;

/// The namespace of the Leases of nodes; the API server creates it.
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The taint that the API server gives to a new Node; usually the node lifecycle controller
/// removes it.
const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// Registers the Node and renews it for ever.
pub(super) async fn keep_registered(client: &Client) {
    let started = now();
    let mut renewals = interval(RENEWAL);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        renewals.tick().await;
        if let Err(error) = register(client, started).await {
            warn!(
                error = &error as &dyn std::error::Error,
                "the simulated node registers again soon"
            );
        }
    }
}

/// Writes the Node and its Lease; writes that change nothing cost the API server nothing.
async fn register(client: &Client, started: Timestamp) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let time = now();
    let body = Patch::Apply(node());
    request("register the Node", nodes.patch(NODE_NAME, &params, &body)).await?;
    let body = Patch::Apply(node_status(started, time));
    let applied = request(
        "report the Node's status",
        nodes.patch_status(NODE_NAME, &params, &body),
    )
    .await?;
    if let Some(patch) = without_not_ready_taint(&applied) {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let answer = nodes.patch(NODE_NAME, &params, &patch);
        request("remove the Node's taint", answer).await?;
    }
    let body = Patch::Apply(lease(&applied, time));
    request(
        "renew the Node's Lease",
        leases.patch(NODE_NAME, &params, &body),
    )
    .await?;
    Ok(())
}

fn node() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE_NAME,
            "labels": {
                "kubernetes.io/arch": architecture(),
                "kubernetes.io/hostname": NODE_NAME,
                "kubernetes.io/os": "linux",
                // `kubectl get nodes` shows it as the role.
                "node-role.kubernetes.io/simulated": "",
                SIMULATED_LABEL: "true",
            },
            "annotations": {
                "kopf-gen.dev/description": format!(
                    "kopf-gen simulates this node: no container runs. Pods become ready at once; \
                     their annotation {POD_RESULT_ANNOTATION} decides how they end."
                ),
            },
        },
    })
}

fn node_status(started: Timestamp, now: Timestamp) -> Value {
    let resources = json!({
        "cpu": "1k", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "10k",
    });
    let version = concat!("kopf-gen-", env!("CARGO_PKG_VERSION"));
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE_NAME},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": NODE_NAME},
            ],
            "allocatable": resources,
            "capacity": resources,
            "conditions": conditions(started, now),
            "nodeInfo": {
                "architecture": architecture(),
                "bootID": "simulated",
                "containerRuntimeVersion": "simulated://none",
                "kernelVersion": "simulated",
                "kubeProxyVersion": "simulated",
                "kubeletVersion": version,
                "machineID": "simulated",
                "operatingSystem": "linux",
                "osImage": "simulated by kopf-gen",
                "systemUUID": "simulated",
            },
        },
    })
}

fn conditions(started: Timestamp, now: Timestamp) -> Value {
    // Rounded, so that most reports change nothing.
    let heartbeat = now.as_second() - now.as_second().rem_euclid(HEARTBEAT_SECONDS);
    let heartbeat = Timestamp::from_second(heartbeat).unwrap_or(now);
    let condition = |type_: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": heartbeat.to_string(),
            "lastTransitionTime": started.to_string(),
        })
    };
    json!([
        condition(
            "Ready",
            "True",
            "SimulatedNodeReady",
            "kopf-gen plays the Pods of this node"
        ),
        condition(
            "MemoryPressure",
            "False",
            "SimulatedNode",
            "no memory is used"
        ),
        condition("DiskPressure", "False", "SimulatedNode", "no disk is used"),
        condition("PIDPressure", "False", "SimulatedNode", "no process runs"),
    ])
}

fn lease(node: &Node, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": NODE_NAME,
            "namespace": LEASE_NAMESPACE,
            // The Lease goes with its Node.
            "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "Node",
                "name": NODE_NAME,
                "uid": node.metadata.uid,
            }],
        },
        "spec": {
            "holderIdentity": NODE_NAME,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format!("{now:.6}"),
        },
    })
}

/// The patch that removes the taint, if the Node has it and no other client changes the Node.
fn without_not_ready_taint(node: &Node) -> Option<Value> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    let kept: Vec<_> = taints
        .iter()
        .filter(|taint| taint.key != NOT_READY_TAINT)
        .collect();
    (kept.len() < taints.len()).then(|| {
        json!({
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": kept},
        })
    })
}

/// The architecture of this machine, as Kubernetes names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heartbeat_changes_only_every_five_minutes() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let started = at(1_700_000_000);
        let first = node_status(started, at(1_700_000_100));

        assert_eq!(first, node_status(started, at(1_700_000_110)));
        assert_ne!(first, node_status(started, at(1_700_000_500)));
    }

    #[test]
    fn only_the_taint_of_a_new_node_is_removed() {
        let node = |taints: Value| {
            let node = json!({"metadata": {"resourceVersion": "7"}, "spec": {"taints": taints}});
            serde_json::from_value::<Node>(node).expect("a Node")
        };
        let not_ready = json!({"key": NOT_READY_TAINT, "effect": "NoSchedule"});
        let other = json!({"key": "example.com/other", "effect": "NoSchedule"});

        assert_eq!(without_not_ready_taint(&node(json!([other]))), None);
        assert_eq!(
            without_not_ready_taint(&node(json!([not_ready, other]))),
            Some(json!({"metadata": {"resourceVersion": "7"}, "spec": {"taints": [other]}}))
        );
    }
}
