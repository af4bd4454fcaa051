//! The kinds that every cluster has, with their types in k8s-openapi.

use super::status_subresource::StatusSubresource;
use crate::load::crd::Scope;
use crate::rust::RustPath;

/// A kind that needs no CustomResourceDefinition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltinKind {
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
    pub status: StatusSubresource,
    /// The module of `k8s_openapi::api` that has the type.
    pub module: &'static str,
}

/// Every stable kind that all supported versions of Kubernetes have.
pub const ALL: &[BuiltinKind] = &[
    namespaced(
        "",
        "v1",
        "ConfigMap",
        "configmaps",
        StatusSubresource::Absent,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "Endpoints",
        "endpoints",
        StatusSubresource::Absent,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "Event",
        "events",
        StatusSubresource::Absent,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "LimitRange",
        "limitranges",
        StatusSubresource::Absent,
        "core::v1",
    ),
    cluster_wide(
        "",
        "v1",
        "Namespace",
        "namespaces",
        StatusSubresource::Present,
        "core::v1",
    ),
    cluster_wide(
        "",
        "v1",
        "Node",
        "nodes",
        StatusSubresource::Present,
        "core::v1",
    ),
    cluster_wide(
        "",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        StatusSubresource::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        StatusSubresource::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "Pod",
        "pods",
        StatusSubresource::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "PodTemplate",
        "podtemplates",
        StatusSubresource::Absent,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        StatusSubresource::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "ResourceQuota",
        "resourcequotas",
        StatusSubresource::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "Secret",
        "secrets",
        StatusSubresource::Absent,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "Service",
        "services",
        StatusSubresource::Present,
        "core::v1",
    ),
    namespaced(
        "",
        "v1",
        "ServiceAccount",
        "serviceaccounts",
        StatusSubresource::Absent,
        "core::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        StatusSubresource::Absent,
        "admissionregistration::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        StatusSubresource::Present,
        "admissionregistration::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        StatusSubresource::Absent,
        "admissionregistration::v1",
    ),
    cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        StatusSubresource::Absent,
        "admissionregistration::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        StatusSubresource::Absent,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "DaemonSet",
        "daemonsets",
        StatusSubresource::Present,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        StatusSubresource::Present,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "ReplicaSet",
        "replicasets",
        StatusSubresource::Present,
        "apps::v1",
    ),
    namespaced(
        "apps",
        "v1",
        "StatefulSet",
        "statefulsets",
        StatusSubresource::Present,
        "apps::v1",
    ),
    namespaced(
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        StatusSubresource::Present,
        "autoscaling::v1",
    ),
    namespaced(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        StatusSubresource::Present,
        "autoscaling::v2",
    ),
    namespaced(
        "batch",
        "v1",
        "CronJob",
        "cronjobs",
        StatusSubresource::Present,
        "batch::v1",
    ),
    namespaced(
        "batch",
        "v1",
        "Job",
        "jobs",
        StatusSubresource::Present,
        "batch::v1",
    ),
    cluster_wide(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        StatusSubresource::Present,
        "certificates::v1",
    ),
    namespaced(
        "coordination.k8s.io",
        "v1",
        "Lease",
        "leases",
        StatusSubresource::Absent,
        "coordination::v1",
    ),
    namespaced(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        StatusSubresource::Absent,
        "discovery::v1",
    ),
    namespaced(
        "events.k8s.io",
        "v1",
        "Event",
        "events",
        StatusSubresource::Absent,
        "events::v1",
    ),
    cluster_wide(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "FlowSchema",
        "flowschemas",
        StatusSubresource::Present,
        "flowcontrol::v1",
    ),
    cluster_wide(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        StatusSubresource::Present,
        "flowcontrol::v1",
    ),
    cluster_wide(
        "networking.k8s.io",
        "v1",
        "IPAddress",
        "ipaddresses",
        StatusSubresource::Absent,
        "networking::v1",
    ),
    namespaced(
        "networking.k8s.io",
        "v1",
        "Ingress",
        "ingresses",
        StatusSubresource::Present,
        "networking::v1",
    ),
    cluster_wide(
        "networking.k8s.io",
        "v1",
        "IngressClass",
        "ingressclasses",
        StatusSubresource::Absent,
        "networking::v1",
    ),
    namespaced(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        StatusSubresource::Absent,
        "networking::v1",
    ),
    cluster_wide(
        "networking.k8s.io",
        "v1",
        "ServiceCIDR",
        "servicecidrs",
        StatusSubresource::Present,
        "networking::v1",
    ),
    cluster_wide(
        "node.k8s.io",
        "v1",
        "RuntimeClass",
        "runtimeclasses",
        StatusSubresource::Absent,
        "node::v1",
    ),
    namespaced(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        StatusSubresource::Present,
        "policy::v1",
    ),
    cluster_wide(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        "clusterroles",
        StatusSubresource::Absent,
        "rbac::v1",
    ),
    cluster_wide(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        StatusSubresource::Absent,
        "rbac::v1",
    ),
    namespaced(
        "rbac.authorization.k8s.io",
        "v1",
        "Role",
        "roles",
        StatusSubresource::Absent,
        "rbac::v1",
    ),
    namespaced(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        StatusSubresource::Absent,
        "rbac::v1",
    ),
    cluster_wide(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        StatusSubresource::Absent,
        "scheduling::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "CSIDriver",
        "csidrivers",
        StatusSubresource::Absent,
        "storage::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "CSINode",
        "csinodes",
        StatusSubresource::Absent,
        "storage::v1",
    ),
    namespaced(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        StatusSubresource::Absent,
        "storage::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        StatusSubresource::Absent,
        "storage::v1",
    ),
    cluster_wide(
        "storage.k8s.io",
        "v1",
        "VolumeAttachment",
        "volumeattachments",
        StatusSubresource::Present,
        "storage::v1",
    ),
];

/// Finds `v1/Pod` or `batch/v1/Job`.
#[must_use]
pub fn find(name: &str) -> Option<&'static BuiltinKind> {
    ALL.iter().find(|builtin| builtin.name() == name)
}

// === impl BuiltinKind ===

impl BuiltinKind {
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
    pub fn type_path(&self) -> RustPath {
        RustPath::external(&format!("k8s_openapi::api::{}::{}", self.module, self.kind))
    }
}

const fn namespaced(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    status: StatusSubresource,
    module: &'static str,
) -> BuiltinKind {
    BuiltinKind {
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
    status: StatusSubresource,
    module: &'static str,
) -> BuiltinKind {
    BuiltinKind {
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
            find("v1/Pod")
                .map(|pod| pod.type_path().to_string())
                .as_deref(),
            Some("k8s_openapi::api::core::v1::Pod")
        );
        assert_eq!(find("batch/v1/Job").map(|job| job.plural), Some("jobs"));
        assert!(find("v1/pod").is_none());
    }
}
