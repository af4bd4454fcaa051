//! Deployments, StatefulSets and DaemonSets, as `kubectl rollout status` sees them.

use serde_json::Value;

use super::{Readiness, condition, is_unobserved, number, unobserved};

const ROLLING_OUT: &str = "RollingOut";

/// Whether a Deployment has rolled out.
#[must_use]
pub fn deployment(object: &Value) -> Readiness {
    if is_unobserved(object) {
        return unobserved();
    }
    if let Some(progress) = condition(object, "Progressing")
        && progress.reason == "ProgressDeadlineExceeded"
    {
        return Readiness::failed(progress.reason, progress.message);
    }
    let status = &object["status"];
    let updated = number(status, "updatedReplicas");
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    if updated < wanted {
        let message = format!("{updated} of {wanted} replicas are updated");
        return Readiness::waiting(ROLLING_OUT, message);
    }
    let old = number(status, "replicas") - updated;
    if old > 0 {
        let message = format!("{old} old replicas are still there");
        return Readiness::waiting(ROLLING_OUT, message);
    }
    let available = number(status, "availableReplicas");
    if available < updated {
        let message = format!("{available} of {updated} replicas are available");
        return Readiness::waiting("Unavailable", message);
    }
    Readiness::ready("Available", format!("{available} replicas are available"))
}

/// Whether a StatefulSet has rolled out; with `OnDelete`, whether its Pods are ready.
#[must_use]
pub fn stateful_set(object: &Value) -> Readiness {
    let (spec, status) = (&object["spec"], &object["status"]);
    if number(status, "observedGeneration") == 0 || is_unobserved(object) {
        return unobserved();
    }
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let ready = number(status, "readyReplicas");
    if ready < wanted {
        let message = format!("{ready} of {wanted} replicas are ready");
        return Readiness::waiting("Unavailable", message);
    }
    let all_ready = Readiness::ready("Available", format!("{ready} replicas are ready"));
    let strategy = &spec["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return all_ready;
    }
    let updated = number(status, "updatedReplicas");
    let partition = number(&strategy["rollingUpdate"], "partition");
    if partition > 0 {
        let moving = (wanted - partition).max(0);
        return if updated < moving {
            let message = format!("{updated} of {moving} replicas are updated");
            Readiness::waiting(ROLLING_OUT, message)
        } else {
            all_ready
        };
    }
    if status["updateRevision"] != status["currentRevision"] {
        let message = format!("{updated} of {wanted} replicas are updated");
        return Readiness::waiting(ROLLING_OUT, message);
    }
    all_ready
}

/// Whether a DaemonSet has rolled out; with `OnDelete`, whether its Pods are available.
#[must_use]
pub fn daemon_set(object: &Value) -> Readiness {
    if is_unobserved(object) {
        return unobserved();
    }
    let status = &object["status"];
    let wanted = number(status, "desiredNumberScheduled");
    let updated = number(status, "updatedNumberScheduled");
    if object["spec"]["updateStrategy"]["type"] != "OnDelete" && updated < wanted {
        let message = format!("{updated} of {wanted} Pods are updated");
        return Readiness::waiting(ROLLING_OUT, message);
    }
    let available = number(status, "numberAvailable");
    if available < wanted {
        let message = format!("{available} of {wanted} Pods are available");
        return Readiness::waiting("Unavailable", message);
    }
    Readiness::ready("Available", format!("{available} Pods are available"))
}
