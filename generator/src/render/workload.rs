//! The objects that `kubectl apply -k deploy` creates beside permissions and webhooks: the
//! Deployment and what surrounds it, the definitions of peerings, and the lists of all files.

use super::helm_values;
use super::object_names::{ObjectNames, ObjectPlace};
use super::operator_arguments;
use crate::model::deploy::POD_SECONDS;
use crate::model::operator::Operator;
use crate::plan::YAML_BANNER;
use crate::yaml::{self, Yaml, YamlDocuments, YamlItem, YamlMap};

pub(super) const KUSTOMIZE_VERSION: &str = "kustomize.config.k8s.io/v1beta1";

/// The port of probes and metrics, and that of webhooks.
const HEALTH_PORT: i32 = 8080;
const WEBHOOK_PORT: i32 = 9443;

pub(super) const BUDGET_COMMENT: &str =
    "Nodes are drained one after another, so that a replica is left to lead.";
pub(super) const POLICY_COMMENT: &str =
    "Probes, metrics and webhooks reach the operator, and nothing else does.";
pub(super) const MONITOR_COMMENT: &str =
    "The cluster needs the definitions of the Prometheus operator for this.";

/// `deploy/base/deployment.yaml`: the namespace and the workload of `operator`.
pub(super) fn deployment(operator: &Operator) -> YamlDocuments {
    let names = ObjectNames::Manifest(operator);
    let metadata = names.metadata(names.name(), ObjectPlace::Cluster);
    let namespace = YamlMap::object("v1", "Namespace").with("metadata", metadata);
    let banner: &[&str] = &[
        YAML_BANNER,
        "Change it by `patches` in deploy/kustomization.yaml, which is yours.",
    ];
    let budget = (operator.deployment.replicas > 1)
        .then(|| (&[BUDGET_COMMENT][..], disruption_budget(names)));
    let documents = [(banner, namespace), (&[], workload(names))];
    documents.into_iter().chain(budget).collect()
}

/// The Deployment.
pub(super) fn workload(names: ObjectNames<'_>) -> YamlMap {
    let operator = names.operator();
    let replicas = match names {
        ObjectNames::Manifest(_) => (&serde_json::Value::from(operator.deployment.replicas)).into(),
        ObjectNames::Release(_) => Yaml::Computed(helm_values::replicas(operator)),
    };
    let spec = YamlMap::default();
    let spec = if operator.leader_election.is_some() {
        let why = "One replica is the leader, and another takes over when the leader is gone.";
        spec.with_comment(&[why], "replicas", replicas)
            .with("strategy", typed("RollingUpdate"))
    } else {
        let why = "Two replicas at once would handle every object twice.";
        spec.with("replicas", replicas)
            .with_comment(&[why], "strategy", typed("Recreate"))
    };
    let pod_metadata = YamlMap::default().with("labels", names.pod_labels());
    let pod_metadata = match names {
        ObjectNames::Manifest(_) => pod_metadata,
        ObjectNames::Release(_) => helm_values::pod_metadata(pod_metadata),
    };
    let spec = spec.with("selector", selector(names)).with(
        "template",
        YamlMap::default()
            .with("metadata", pod_metadata)
            .with("spec", pod(names)),
    );
    YamlMap::object("apps/v1", "Deployment")
        .with(
            "metadata",
            names.labelled(names.name(), ObjectPlace::Own, YamlMap::default()),
        )
        .with("spec", spec)
}

fn pod(names: ObjectNames<'_>) -> YamlMap {
    let pod = YamlMap::default().with("serviceAccountName", names.account());
    let pod = match names.operator().stop_times().pod_seconds() {
        POD_SECONDS => pod,
        seconds => {
            let why = "The time that `settings.shutdown` in kopf.yaml needs.";
            let seconds = &serde_json::Value::from(seconds);
            pod.with_comment(&[why], "terminationGracePeriodSeconds", seconds)
        }
    };
    let pod = pod.with(
        "securityContext",
        YamlMap::default()
            .with("runAsNonRoot", true)
            .with("seccompProfile", typed("RuntimeDefault")),
    );
    let pod = match names {
        ObjectNames::Manifest(_) => pod,
        ObjectNames::Release(_) => helm_values::pod_options(pod),
    };
    pod.with("containers", Yaml::list([container(names)]))
}

fn typed(kind: &str) -> YamlMap {
    YamlMap::default().with("type", kind)
}

fn selector(names: ObjectNames<'_>) -> YamlMap {
    YamlMap::default().with("matchLabels", names.pod_labels())
}

/// The PodDisruptionBudget of several replicas.
pub(super) fn disruption_budget(names: ObjectNames<'_>) -> YamlMap {
    let spec = YamlMap::default()
        .with("maxUnavailable", 1)
        .with("selector", selector(names));
    YamlMap::object("policy/v1", "PodDisruptionBudget")
        .with("metadata", names.metadata(names.name(), ObjectPlace::Own))
        .with("spec", spec)
}

/// `deploy/base/network-policy.yaml`.
pub(super) fn network_policy(operator: &Operator) -> YamlDocuments {
    let names = ObjectNames::Manifest(operator);
    yaml::documents([(&[YAML_BANNER, POLICY_COMMENT], policy(names))])
}

/// The NetworkPolicy.
pub(super) fn policy(names: ObjectNames<'_>) -> YamlMap {
    let port = |port: i32| YamlMap::default().with("port", port);
    let webhooks = names.operator().has_webhooks().then(|| port(WEBHOOK_PORT));
    let ports = Yaml::list([port(HEALTH_PORT)].into_iter().chain(webhooks));
    let spec = YamlMap::default()
        .with("podSelector", selector(names))
        .with("policyTypes", Yaml::flow(["Ingress"]))
        .with(
            "ingress",
            Yaml::list([YamlMap::default().with("ports", ports)]),
        );
    YamlMap::object("networking.k8s.io/v1", "NetworkPolicy")
        .with("metadata", names.metadata(names.name(), ObjectPlace::Own))
        .with("spec", spec)
}

/// `deploy/base/monitoring.yaml`.
pub(super) fn monitoring(operator: &Operator) -> YamlDocuments {
    let names = ObjectNames::Manifest(operator);
    yaml::documents([
        (&[YAML_BANNER], metrics_service(names)),
        (&[MONITOR_COMMENT], monitor(names)),
    ])
}

fn metrics_place(names: ObjectNames<'_>) -> YamlMap {
    names.labelled(
        names.suffixed("-metrics"),
        ObjectPlace::Own,
        YamlMap::default(),
    )
}

/// The Service of the metrics.
pub(super) fn metrics_service(names: ObjectNames<'_>) -> YamlMap {
    let port = YamlMap::default()
        .with("name", "metrics")
        .with("port", HEALTH_PORT)
        .with("targetPort", "health");
    YamlMap::object("v1", "Service")
        .with("metadata", metrics_place(names))
        .with(
            "spec",
            YamlMap::default()
                .with("selector", names.pod_labels())
                .with("ports", Yaml::list([port])),
        )
}

/// The ServiceMonitor.
pub(super) fn monitor(names: ObjectNames<'_>) -> YamlMap {
    let endpoint = YamlMap::default()
        .with("port", "metrics")
        .with("path", "/metrics");
    YamlMap::object("monitoring.coreos.com/v1", "ServiceMonitor")
        .with("metadata", metrics_place(names))
        .with(
            "spec",
            YamlMap::default()
                .with("selector", selector(names))
                .with("endpoints", Yaml::list([endpoint])),
        )
}

fn container(names: ObjectNames<'_>) -> YamlMap {
    let operator = names.operator();
    let port = YamlMap::default()
        .with("name", "health")
        .with("containerPort", HEALTH_PORT);
    let get = |path: &str| {
        let get = YamlMap::default().with("path", path).with("port", "health");
        YamlMap::default().with("httpGet", get)
    };
    let container = YamlMap::default().with("name", "operator");
    let container = match names {
        ObjectNames::Manifest(_) => container
            .with("image", operator.deployment.image.as_str())
            .with("args", operator_arguments::of_manifest(operator)),
        ObjectNames::Release(_) => {
            let container = container.with("image", helm_values::image(operator));
            helm_values::with_pull_policy(container)
                .with("args", operator_arguments::of_chart(operator))
        }
    };
    let container = container
        .with(
            "ports",
            vec![YamlItem::new(
                vec!["Also serves metrics, at /metrics.".to_owned()],
                port,
            )],
        )
        .with_comment(
            &["Fails if a part of the operator has ended or hangs, so that Kubernetes restarts it."],
            "livenessProbe",
            get("/healthz").with("timeoutSeconds", 10),
        )
        .with_comment(
            &["Fails while the operator cannot handle objects; the response says why."],
            "readinessProbe",
            get("/readyz"),
        );
    let resources = match names {
        ObjectNames::Manifest(_) => Yaml::from(&resources()),
        ObjectNames::Release(_) => Yaml::Computed(helm_values::resources(&resources())),
    };
    environment(names, container)
        .with("resources", resources)
        .with(
            "securityContext",
            YamlMap::default()
                .with("allowPrivilegeEscalation", false)
                .with("readOnlyRootFilesystem", true)
                .with(
                    "capabilities",
                    YamlMap::default().with("drop", Yaml::flow(["ALL"])),
                ),
        )
}

/// The container with its environment variables.
fn environment(names: ObjectNames<'_>, container: YamlMap) -> YamlMap {
    let operator = names.operator();
    let has_identity =
        operator.leader_election.is_some() || operator.peering.membership().is_some();
    let field = YamlMap::default().with("fieldPath", "metadata.name");
    let variable = YamlMap::default()
        .with("name", "POD_ID")
        .with("valueFrom", YamlMap::default().with("fieldRef", field));
    let why = "The identity of this operator among its peers and replicas.";
    let variable = has_identity.then(|| YamlItem::new(vec![why.to_owned()], variable));
    match names {
        ObjectNames::Release(_) => helm_values::environment(container, variable),
        ObjectNames::Manifest(_) => match variable {
            Some(variable) => container.with("env", vec![variable]),
            None => container,
        },
    }
}

/// What the container asks for, and the most that it gets.
pub(super) fn resources() -> serde_json::Value {
    serde_json::json!({
        "requests": {"cpu": "10m", "memory": "32Mi"},
        "limits": {"memory": "256Mi"},
    })
}

/// `deploy/kustomization.yaml` of a new crate, which is the user's.
pub(super) fn kustomization(entries: Vec<&str>) -> YamlDocuments {
    let why: &[&str] = &[
        "This file is yours. `base` follows from kopf.yaml; what you want otherwise, such as more memory,",
        "goes into `patches`, and more objects into `resources`.",
    ];
    let map =
        YamlMap::object(KUSTOMIZE_VERSION, "Kustomization").with("resources", Yaml::list(entries));
    yaml::documents([(why, map)])
}

/// `deploy/base/kustomization.yaml`: the generated files in that folder.
pub(super) fn base(files: Vec<&str>) -> YamlDocuments {
    let map =
        YamlMap::object(KUSTOMIZE_VERSION, "Kustomization").with("resources", Yaml::list(files));
    yaml::documents([(&[YAML_BANNER], map)])
}

/// `deploy/base/peering.yaml`.
///
/// The operator creates the peering itself: `kubectl apply` cannot create an object together with
/// its definition.
pub(super) fn peering() -> YamlDocuments {
    let banner: &[&str] = &[
        YAML_BANNER,
        "Through objects of these kinds, operators made with kopf-gen or Kopf find each other, and those",
        "with lower priority pause. The CRDs are those of Kopf.",
    ];
    yaml::documents([
        (banner, peering_definition("Cluster", "ClusterKopfPeering")),
        (&[], peering_definition("Namespaced", "KopfPeering")),
    ])
}

fn peering_definition(scope: &str, kind: &str) -> YamlMap {
    let singular = kind.to_ascii_lowercase();
    let status = YamlMap::default()
        .with("type", "object")
        .with("x-kubernetes-preserve-unknown-fields", true);
    let schema = YamlMap::default()
        .with("type", "object")
        .with("properties", YamlMap::default().with("status", status));
    let version = YamlMap::default()
        .with("name", "v1")
        .with("served", true)
        .with("storage", true)
        .with("schema", YamlMap::default().with("openAPIV3Schema", schema));
    YamlMap::object("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        .with(
            "metadata",
            YamlMap::default().with("name", format!("{singular}s.kopf.dev")),
        )
        .with(
            "spec",
            YamlMap::default()
                .with("scope", scope)
                .with("group", "kopf.dev")
                .with(
                    "names",
                    YamlMap::default()
                        .with("kind", kind)
                        .with("plural", format!("{singular}s"))
                        .with("singular", singular),
                )
                .with("versions", Yaml::list([version])),
        )
}
