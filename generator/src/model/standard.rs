//! The kinds that every cluster has, with their types in k8s-openapi.

use super::kind::Status;
use crate::load::crd::Scope;

/// A kind that needs no CustomResourceDefinition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardKind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural in URLs.
    pub plural: &'static str,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// Whether it has a status subresource.
    pub status: Status,
    /// The module of `k8s_openapi::api` that has the type.
    pub module: &'static str,
}

/// Every stable kind that all supported versions of Kubernetes have.
pub const ALL: &[StandardKind] = &[
    namespaced(
        "",
        "v1",
        "ConfigMap",
        "configmaps",
        Status::Absent,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "Endpoints",
        "endpoints",
        Status::Absent,
        "core::v1",
    ),
    namespaced("", "v1", "Event", "events", Status::Absent, "core::v1"),
    namespaced(
        "",
        "v1",
        "LimitRange",
        "limitranges",
        Status::Absent,
        "core::v1",
    ),
    cluster_wide(
        "",
        "v1",
        "Namespace",
        "namespaces",
        Status::Present,
        "core::v1",
    ),
    cluster_wide("", "v1", "Node", "nodes", Status::Present, "core::v1"),
    cluster_wide(
        "",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        Status::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        Status::Present,
        "core::v1",
    ),
    namespaced("", "v1", "Pod", "pods", Status::Present, "core::v1"),
    namespaced(
        "",
        "v1",
        "PodTemplate",
        "podtemplates",
        Status::Absent,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        Status::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "ResourceQuota",
        "resourcequotas",
        Status::Present,
        "core::v1",
    ),
    namespaced("", "v1", "Secret", "secrets", Status::Absent, "core::v1"),
    namespaced("", "v1", "Service", "services", Status::Present, "core::v1"),
    namespaced(
        "",
        "v1",
        "ServiceAccount",
        "serviceaccounts",
        Status::Absent,
        "core::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        Status::Absent,
        "admissionregistration::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        Status::Present,
        "admissionregistration::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        Status::Absent,
        "admissionregistration::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        Status::Absent,
        "admissionregistration::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        Status::Absent,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "DaemonSet",
        "daemonsets",
        Status::Present,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        Status::Present,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "ReplicaSet",
        "replicasets",
        Status::Present,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "StatefulSet",
        "statefulsets",
        Status::Present,
        "apps::v1",
    ),
    namespaced(
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        Status::Present,
        "autoscaling::v1",
    ),
    namespaced(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        Status::Present,
        "autoscaling::v2",
    ),
    namespaced(
        "batch",
        "v1",
        "CronJob",
        "cronjobs",
        Status::Present,
        "batch::v1",
    ),
    namespaced("batch", "v1", "Job", "jobs", Status::Present, "batch::v1"),
    cluster_wide(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        Status::Present,
        "certificates::v1",
    ),
    namespaced(
        "coordination.k8s.io",
        "v1",
        "Lease",
        "leases",
        Status::Absent,
        "coordination::v1",
    ),
    namespaced(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        Status::Absent,
        "discovery::v1",
    ),
    namespaced(
        "events.k8s.io",
        "v1",
        "Event",
        "events",
        Status::Absent,
        "events::v1",
    ),
    cluster_wide(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "FlowSchema",
        "flowschemas",
        Status::Present,
        "flowcontrol::v1",
    ),
    cluster_wide(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        Status::Present,
        "flowcontrol::v1",
    ),
    cluster_wide(
        "networking.k8s.io",
        "v1",
        "IPAddress",
        "ipaddresses",
        Status::Absent,
        "networking::v1",
    ),
    namespaced(
        "networking.k8s.io",
        "v1",
        "Ingress",
        "ingresses",
        Status::Present,
        "networking::v1",
    ),
    cluster_wide(
        "networking.k8s.io",
        "v1",
        "IngressClass",
        "ingressclasses",
        Status::Absent,
        "networking::v1",
    ),
    namespaced(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        Status::Absent,
        "networking::v1",
    ),
    cluster_wide(
        "networking.k8s.io",
        "v1",
        "ServiceCIDR",
        "servicecidrs",
        Status::Present,
        "networking::v1",
    ),
    cluster_wide(
        "node.k8s.io",
        "v1",
        "RuntimeClass",
        "runtimeclasses",
        Status::Absent,
        "node::v1",
    ),
    namespaced(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        Status::Present,
        "policy::v1",
    ),
    cluster_wide(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        "clusterroles",
        Status::Absent,
        "rbac::v1",
    ),
    cluster_wide(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        Status::Absent,
        "rbac::v1",
    ),
    namespaced(
        "rbac.authorization.k8s.io",
        "v1",
        "Role",
        "roles",
        Status::Absent,
        "rbac::v1",
    ),
    namespaced(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        Status::Absent,
        "rbac::v1",
    ),
    cluster_wide(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        Status::Absent,
        "scheduling::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "CSIDriver",
        "csidrivers",
        Status::Absent,
        "storage::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "CSINode",
        "csinodes",
        Status::Absent,
        "storage::v1",
    ),
    namespaced(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        Status::Absent,
        "storage::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        Status::Absent,
        "storage::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "VolumeAttachment",
        "volumeattachments",
        Status::Present,
        "storage::v1",
    ),
];

/// Finds `v1/Pod` or `batch/v1/Job`.
#[must_use]
pub fn find(name: &str) -> Option<&'static StandardKind> {
    ALL.iter().find(|standard| standard.name() == name)
}

// === impl StandardKind ===

impl StandardKind {
    /// `v1/Pod`, `batch/v1/Job`.
    #[must_use]
    pub fn name(&self) -> String {
        let Self {
            group,
            version,
            kind,
            ..
        } = self;
        if group.is_empty() {
            format!("{version}/{kind}")
        } else {
            format!("{group}/{version}/{kind}")
        }
    }

    /// The path of the Rust type.
    #[must_use]
    pub fn type_path(&self) -> String {
        format!("k8s_openapi::api::{}::{}", self.module, self.kind)
    }
}

const fn namespaced(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    status: Status,
    module: &'static str,
) -> StandardKind {
    StandardKind {
        group,
        version,
        kind,
        plural,
        scope: Scope::Namespaced,
        status,
        module,
    }
}

const fn cluster_wide(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    status: Status,
    module: &'static str,
) -> StandardKind {
    StandardKind {
        group,
        version,
        kind,
        plural,
        scope: Scope::Cluster,
        status,
        module,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubectl() {
        assert_eq!(
            find("v1/Pod").map(StandardKind::type_path).as_deref(),
            Some("k8s_openapi::api::core::v1::Pod")
        );
        assert_eq!(find("batch/v1/Job").map(|job| job.plural), Some("jobs"));
        assert!(find("v1/pod").is_none());
    }
}
