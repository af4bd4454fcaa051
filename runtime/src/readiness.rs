//! Whether children of well-known kinds are ready, as `kubectl rollout status` and `kubectl wait`
//! see them.
//!
//! ```
//! use k8s_openapi::api::core::v1::PersistentVolumeClaim;
//! use kopf_runtime::readiness;
//!
//! let claim = PersistentVolumeClaim::default();
//! let readiness = readiness::of(&claim);
//! assert!(!readiness.is_ready());
//! assert_eq!(readiness.reason(), "Pending");
//! ```
//!
//! In a handler, `cx.set_ready_condition(&readiness::of(&claim))` reports it in the status.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kopf_core::readiness;
pub use kopf_core::readiness::{Readiness, ReadinessState};
use serde::Serialize;
use serde_json::Value;

/// A kind whose objects are ready or not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind whose readiness is known",
    note = "make a `Readiness` with `Readiness::ready`, `waiting` or `failed`"
)]
pub trait HasReadiness: Serialize {
    /// Whether the object, given as JSON, is ready.
    fn assess(object: &Value) -> Readiness;
}

/// Whether an object is ready, and why.
#[must_use]
pub fn of<T: HasReadiness>(object: &T) -> Readiness {
    match serde_json::to_value(object) {
        Ok(object) => T::assess(&object),
        Err(error) => Readiness::waiting("Unreadable", error.to_string()),
    }
}

macro_rules! known {
    ($($kind:ty => $assess:path,)+) => {
        $(impl HasReadiness for $kind {
            fn assess(object: &Value) -> Readiness {
                $assess(object)
            }
        })+
    };
}

known! {
    Deployment => readiness::deployment,
    StatefulSet => readiness::stateful_set,
    DaemonSet => readiness::daemon_set,
    Job => readiness::job,
    Pod => readiness::pod,
    PersistentVolumeClaim => readiness::persistent_volume_claim,
    Service => readiness::service,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn typed_objects_are_assessed_as_their_json_is() {
        let object = json!({
            "metadata": {"generation": 1},
            "spec": {"replicas": 1, "selector": {}, "template": {}},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        });
        let typed: Deployment = serde_json::from_value(object.clone()).expect("it fits");
        assert_eq!(of(&typed), readiness::deployment(&object));
        assert!(of(&typed).is_ready());
        assert!(of(&Service::default()).is_ready());
        assert!(!of(&Pod::default()).is_ready());
    }
}
