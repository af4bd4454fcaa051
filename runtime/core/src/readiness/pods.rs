//! Pods, Jobs, claims and Services, as `kubectl wait` sees them.

use serde_json::Value;

use super::{Readiness, condition};

/// Whether a Pod has the condition `Ready`.
#[must_use]
pub fn pod(object: &Value) -> Readiness {
    let status = &object["status"];
    if status["phase"] == "Failed" {
        let reason = status["reason"].as_str().unwrap_or("PodFailed");
        let message = status["message"].as_str().unwrap_or("the Pod has failed");
        return Readiness::failed(reason, message);
    }
    match condition(object, "Ready") {
        Some(ready) if ready.is_true => Readiness::ready("PodReady", "the Pod is ready"),
        ready => {
            let reason = ready.as_ref().map_or("", |it| it.reason);
            let reason = if reason.is_empty() {
                "PodNotReady"
            } else {
                reason
            };
            let said = ready.as_ref().map_or("", |it| it.message);
            let said = if said.is_empty() {
                "the Pod is not ready"
            } else {
                said
            };
            match blocked_container(status) {
                Some(why) => Readiness::waiting(reason, format!("{said}: {why}")),
                None => Readiness::waiting(reason, said),
            }
        }
    }
}

/// The first container that waits, and what for, such as `web: ImagePullBackOff`.
fn blocked_container(status: &Value) -> Option<String> {
    let lists = [
        &status["initContainerStatuses"],
        &status["containerStatuses"],
    ];
    let mut containers = lists.into_iter().filter_map(Value::as_array).flatten();
    containers.find_map(|container| {
        let reason = container["state"]["waiting"]["reason"].as_str()?;
        let name = container["name"].as_str().unwrap_or_default();
        Some(format!("{name}: {reason}"))
    })
}

/// Whether a Job is complete.
#[must_use]
pub fn job(object: &Value) -> Readiness {
    let is_true = |name: &str| condition(object, name).filter(|it| it.is_true);
    if is_true("Complete").is_some() {
        return Readiness::ready("Complete", "the Job is complete");
    }
    if let Some(failure) = is_true("Failed") {
        let reason = if failure.reason.is_empty() {
            "JobFailed"
        } else {
            failure.reason
        };
        return Readiness::failed(reason, failure.message);
    }
    if is_true("Suspended").is_some() {
        return Readiness::waiting("Suspended", "the Job is suspended");
    }
    let wanted = object["spec"]["completions"].as_i64().unwrap_or(1);
    let done = object["status"]["succeeded"].as_i64().unwrap_or_default();
    Readiness::waiting("Running", format!("{done} of {wanted} Pods have succeeded"))
}

/// Whether a PersistentVolumeClaim is bound.
#[must_use]
pub fn persistent_volume_claim(object: &Value) -> Readiness {
    match object["status"]["phase"].as_str() {
        Some("Bound") => Readiness::ready("Bound", "the claim is bound"),
        Some("Lost") => {
            Readiness::failed("Lost", "the volume of the claim does not exist any more")
        }
        _ => Readiness::waiting("Pending", "the claim is not bound yet"),
    }
}

/// Whether a Service has what its type promises: an address from outside, or nothing to wait for.
#[must_use]
pub fn service(object: &Value) -> Readiness {
    let kind = object["spec"]["type"].as_str().unwrap_or("ClusterIP");
    if kind != "LoadBalancer" {
        return Readiness::ready(
            "Assigned",
            format!("a Service of type {kind} works at once"),
        );
    }
    let ingress = object["status"]["loadBalancer"]["ingress"].as_array();
    let address = ingress.and_then(|all| all.first());
    let text = |address: &Value| {
        let text = address["ip"].as_str().or(address["hostname"].as_str());
        text.map(str::to_owned)
    };
    match address.and_then(text) {
        Some(address) => Readiness::ready("Assigned", format!("the address is {address}")),
        None => Readiness::waiting("Pending", "the load balancer has no address yet"),
    }
}
