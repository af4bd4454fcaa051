//! The objects that `kubectl apply -k deploy` creates beside permissions and webhooks: the
//! Deployment, the peering, and the list of all files.

use super::crds;
use super::rbac::{cluster_binding, metadata};
use super::yaml::{self, Yaml, YamlItem, YamlMap};
use crate::model::operator::Operator;

/// The entry of `deploy/kustomization.yaml` for `crds/kustomization.yaml`.
pub const CRD_BASE: &str = "../crds";

/// The label by which Services and Deployments find the Pods of an operator.
pub(super) const NAME_LABEL: &str = "app.kubernetes.io/name";

/// The time that Kubernetes gives a pod to stop, in seconds, unless the pod says more.
pub const POD_SECONDS: u64 = 30;

/// `deploy/deployment.yaml`: the namespace and the workload of `operator`.
#[must_use]
pub fn deployment(operator: &Operator) -> String {
    let name = operator.name.as_str();
    let labels = || YamlMap::default().with(NAME_LABEL, name);
    let spec = YamlMap::default();
    let strategy = |kind: &str| YamlMap::default().with("type", kind);
    let spec = if operator.leader_election.is_some() {
        let why = "One replica is the leader, and the other takes over when the leader is gone.";
        spec.with_comment(&[why], "replicas", 2)
            .with("strategy", strategy("RollingUpdate"))
    } else {
        let why = "Two replicas at once would handle every object twice.";
        spec.with("replicas", 1)
            .with_comment(&[why], "strategy", strategy("Recreate"))
    };
    let pod = YamlMap::default().with("serviceAccountName", name);
    let pod = match operator.stop_times().pod_seconds() {
        POD_SECONDS => pod,
        seconds => {
            let why = "The time that `settings.shutdown` in kopf.yaml needs.";
            let seconds = &serde_json::Value::from(seconds);
            pod.with_comment(&[why], "terminationGracePeriodSeconds", seconds)
        }
    };
    let pod = pod
        .with(
            "securityContext",
            YamlMap::default()
                .with("runAsNonRoot", true)
                .with("seccompProfile", strategy("RuntimeDefault")),
        )
        .with("containers", Yaml::list([container(operator)]));
    let spec = spec
        .with("selector", YamlMap::default().with("matchLabels", labels()))
        .with(
            "template",
            YamlMap::default()
                .with("metadata", YamlMap::default().with("labels", labels()))
                .with("spec", pod),
        );
    let namespace = YamlMap::object("v1", "Namespace").with("metadata", metadata(name, None));
    let deployment = YamlMap::object("apps/v1", "Deployment")
        .with(
            "metadata",
            metadata(name, Some(name)).with("labels", labels()),
        )
        .with("spec", spec);
    yaml::documents(&[(&[], namespace), (&[], deployment)])
}

fn container(operator: &Operator) -> YamlMap {
    let everywhere = operator.namespaces.is_empty().then_some("--all-namespaces");
    let arguments = ["run"].into_iter().chain(everywhere).chain([
        "--log-format=json",
        "--liveness=http://0.0.0.0:8080/healthz",
    ]);
    let port = YamlMap::default()
        .with("name", "health")
        .with("containerPort", 8080);
    let get = |path: &str| {
        let get = YamlMap::default().with("path", path).with("port", "health");
        YamlMap::default().with("httpGet", get)
    };
    let mut container = YamlMap::default()
        .with("name", "operator")
        .with("image", format!("{}:latest", operator.name))
        .with("args", Yaml::list(arguments))
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
    if operator.leader_election.is_some() || operator.peering.membership().is_some() {
        let field = YamlMap::default().with("fieldPath", "metadata.name");
        let variable = YamlMap::default()
            .with("name", "POD_ID")
            .with("valueFrom", YamlMap::default().with("fieldRef", field));
        let why = "The identity of this operator among its peers and replicas.";
        let variable = YamlItem::new(vec![why.to_owned()], variable);
        container = container.with("env", vec![variable]);
    }
    container
        .with(
            "resources",
            YamlMap::default()
                .with(
                    "requests",
                    YamlMap::default().with("cpu", "10m").with("memory", "32Mi"),
                )
                .with("limits", YamlMap::default().with("memory", "256Mi")),
        )
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

/// `deploy/kustomization.yaml`: the files of a new crate, of which `has_children` adds one.
#[must_use]
pub fn kustomization(operator: &Operator, has_children: bool) -> String {
    let bases = crds::bases(operator).len();
    let files = [
        (bases > 0, CRD_BASE),
        (bases < operator.crd_files.len(), "crds.yaml"),
        (operator.peering.is_deployed(), "peering.yaml"),
        (true, "rbac.yaml"),
        (has_children, "children.yaml"),
        (true, "deployment.yaml"),
        (operator.has_webhooks(), "webhooks.yaml"),
    ];
    let files = files
        .into_iter()
        .filter_map(|(is, file)| is.then_some(file));
    let image = YamlMap::default()
        .with("name", operator.name.as_str())
        .with("newTag", "latest");
    let map = YamlMap::object("kustomize.config.k8s.io/v1beta1", "Kustomization")
        .with("resources", Yaml::list(files))
        .with("images", Yaml::list([image]));
    yaml::documents(&[(&[], map)])
}

/// `deploy/children.yaml`: the permissions of `handler`, which creates children.
#[must_use]
pub fn children(operator: &Operator, handler: &str) -> String {
    let name = format!("{}-children", operator.name);
    let rule = YamlMap::default()
        .with("apiGroups", Yaml::Flow(vec![Yaml::Quoted(String::new())]))
        .with("resources", Yaml::flow(["configmaps"]))
        .with("verbs", Yaml::flow(["get", "create", "patch"]));
    let why =
        format!("{handler} creates or changes a ConfigMap for each object, by server-side apply");
    let role = YamlMap::object("rbac.authorization.k8s.io/v1", "ClusterRole")
        .with("metadata", metadata(&name, None))
        .with("rules", vec![YamlItem::new(vec![why], rule)]);
    yaml::documents(&[
        (
            &[
                "Permissions for requests that your handlers send. This file is yours: change it with the handlers.",
            ],
            role,
        ),
        (&[], cluster_binding(&operator.name, &name)),
    ])
}

/// `deploy/peering.yaml`; `None` if `operator` needs none.
#[must_use]
pub fn peering(operator: &Operator) -> Option<String> {
    let membership = operator.peering.membership();
    let membership = membership.filter(|_| operator.peering.is_deployed())?;
    let peering = YamlMap::object("kopf.dev/v1", "ClusterKopfPeering")
        .with("metadata", metadata(membership.peering(), None));
    Some(yaml::documents(&[
        (
            &[
                "@generated by kopf-gen. Do not edit: change kopf.yaml, then run `kopf-gen generate`.",
                "Through these objects, operators made with kopf-gen or Kopf find each other, and those with lower",
                "priority pause. The CRDs are those of Kopf.",
            ],
            peering_definition("Cluster", "ClusterKopfPeering"),
        ),
        (&[], peering_definition("Namespaced", "KopfPeering")),
        (
            &[
                "For operators that watch the whole cluster. An operator that watches single namespaces needs a",
                "KopfPeering of this name in each of them.",
            ],
            peering,
        ),
    ]))
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
        .with("metadata", metadata(&format!("{singular}s.kopf.dev"), None))
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
