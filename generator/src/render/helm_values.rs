//! The values of a chart, as its templates read them.

use serde_json::{Value, json};

use super::object_names::include;
use crate::helm_expression::HelmExpression;
use crate::load::manifest::ConfigurationOwner;
use crate::model::operator::Operator;
use crate::yaml::{ChartPart, Yaml, YamlItem, YamlMap};

/// The number of Pods.
pub(super) fn replicas(operator: &Operator) -> HelmExpression {
    let default = HelmExpression::Scalar(operator.deployment.replicas.into());
    let given = HelmExpression::given_or(&["replicas"], default);
    HelmExpression::Call("int", vec![given])
}

/// Whether there are several Pods.
pub(super) fn has_replicas(operator: &Operator) -> HelmExpression {
    let one = HelmExpression::Scalar(1.into());
    HelmExpression::Call("gt", vec![replicas(operator), one])
}

/// The watched namespaces; all if there are none.
pub(super) fn watched_namespaces(operator: &Operator) -> HelmExpression {
    let names = operator.namespaces.iter().map(HelmExpression::text);
    let default = HelmExpression::Call("list", names.collect());
    HelmExpression::given_or(&["watchNamespaces"], default)
}

/// The variable of a loop over namespaces.
pub(super) fn namespace_variable() -> HelmExpression {
    HelmExpression::Variable("namespace")
}

/// The format of log lines.
pub(super) fn log_format() -> HelmExpression {
    HelmExpression::value_or(&["logFormat"], HelmExpression::text("json"))
}

/// The arguments that the chart's user adds.
pub(super) fn extra_arguments() -> HelmExpression {
    HelmExpression::Value(&["extraArgs"])
}

/// The variable of a loop over arguments.
pub(super) fn argument_variable() -> HelmExpression {
    HelmExpression::Call("toString", vec![HelmExpression::Variable("argument")])
}

/// Who maintains the webhook configurations.
pub(super) fn webhook_mode(operator: &Operator) -> HelmExpression {
    let default = owner_word(operator.admission.configuration);
    HelmExpression::value_or(&["webhooks", "mode"], HelmExpression::text(default))
}

/// The word for one who maintains the webhook configurations.
pub(super) fn owner_word(owner: ConfigurationOwner) -> &'static str {
    match owner {
        ConfigurationOwner::Managed => "managed",
        ConfigurationOwner::CertManager => "cert-manager",
    }
}

/// Whether this is not the text.
pub(super) fn differs(expression: &HelmExpression, text: &str) -> HelmExpression {
    let text = HelmExpression::text(text);
    HelmExpression::Call("ne", vec![expression.clone(), text])
}

/// What the container asks for, and the most that it gets.
pub(super) fn resources(default: &Value) -> HelmExpression {
    let default = HelmExpression::text(default.to_string());
    let default = HelmExpression::Call("fromJson", vec![default]);
    HelmExpression::given_or(&["resources"], default)
}

/// The metadata of the Pods, with the annotations of the chart's user.
pub(super) fn pod_metadata(metadata: YamlMap) -> YamlMap {
    optional(metadata, &["podAnnotations"], "annotations")
}

/// The Pods, with what the chart's user sets for them.
pub(super) fn pod_options(pod: YamlMap) -> YamlMap {
    let pod = optional(pod, &["imagePullSecrets"], "imagePullSecrets");
    let pod = optional(pod, &["priorityClassName"], "priorityClassName");
    let pod = optional(pod, &["nodeSelector"], "nodeSelector");
    let pod = optional(pod, &["tolerations"], "tolerations");
    optional(pod, &["affinity"], "affinity")
}

/// The image, unless the chart's user names another.
pub(super) fn image(operator: &Operator) -> HelmExpression {
    let (repository, version) = split_image(&operator.deployment.image);
    let repository = HelmExpression::text(repository);
    let repository = HelmExpression::value_or(&["image", "repository"], repository);
    let given = |mark: &str, path: &'static [&'static str]| {
        let mark = HelmExpression::text(mark);
        HelmExpression::Call("print", vec![mark, HelmExpression::Value(path)])
    };
    let tag = HelmExpression::Call(
        "ternary",
        vec![
            given(":", &["image", "tag"]),
            HelmExpression::text(version),
            is_set(&["image", "tag"]),
        ],
    );
    let version = HelmExpression::Call(
        "ternary",
        vec![
            given("@", &["image", "digest"]),
            tag,
            is_set(&["image", "digest"]),
        ],
    );
    HelmExpression::Call("print", vec![repository, version])
}

/// The repository of an image, and the rest of its name: `:1.0`, or `@sha256:…`.
fn split_image(image: &str) -> (&str, &str) {
    let end_of_registry = image.rfind('/').map_or(0, |slash| slash + 1);
    let name = image.get(end_of_registry..).unwrap_or_default();
    let length = name.find([':', '@']).unwrap_or(name.len());
    image.split_at(end_of_registry + length)
}

/// The policy by which the image is pulled, if the chart's user sets it.
pub(super) fn with_pull_policy(container: YamlMap) -> YamlMap {
    optional(container, &["image", "pullPolicy"], "imagePullPolicy")
}

/// The container with its own environment variable and those of the chart's user.
pub(super) fn environment(container: YamlMap, own: Option<YamlItem>) -> YamlMap {
    let Some(own) = own else {
        return optional(container, &["env"], "env");
    };
    let more = Yaml::Computed(HelmExpression::Variable("variable"));
    let each = ChartPart::ForEach("variable", HelmExpression::Value(&["env"]));
    let more = YamlItem::new(Vec::new(), more).only(each);
    container.with("env", vec![own, more])
}

/// Whether there is a ServiceAccount of the release's own.
pub(super) fn creates_account() -> HelmExpression {
    HelmExpression::flag_or(&["serviceAccount", "create"], true)
}

/// The metadata of the ServiceAccount, with the annotations of the chart's user.
pub(super) fn account_metadata(metadata: YamlMap) -> YamlMap {
    optional(metadata, &["serviceAccount", "annotations"], "annotations")
}

/// Whether only probes, metrics and webhooks reach the Pods.
pub(super) fn has_network_policy(operator: &Operator) -> HelmExpression {
    let default = operator.deployment.network_policy;
    HelmExpression::flag_or(&["networkPolicy", "enabled"], default)
}

/// Whether there is a ServiceMonitor, also for the other parts that read metrics.
pub(super) fn has_monitor(operator: &Operator) -> HelmExpression {
    let default = operator.deployment.service_monitor;
    let own = HelmExpression::flag_or(&["metrics", "serviceMonitor", "enabled"], default);
    HelmExpression::Call(
        "or",
        vec![own, has_alerts(operator), has_dashboard(operator)],
    )
}

/// Whether there are alert rules.
pub(super) fn has_alerts(operator: &Operator) -> HelmExpression {
    let default = operator.deployment.alerts;
    HelmExpression::flag_or(&["metrics", "alerts", "enabled"], default)
}

/// Whether there is a dashboard.
pub(super) fn has_dashboard(operator: &Operator) -> HelmExpression {
    let default = operator.deployment.dashboard;
    HelmExpression::flag_or(&["metrics", "dashboard", "enabled"], default)
}

/// How namespaces are served, as the named template `scope` says it.
pub(super) fn scope(operator: &Operator) -> HelmExpression {
    include(operator, "scope")
}

/// `values.yaml`, which is the chart's owner's.
pub(super) fn file(operator: &Operator, resources: &Value) -> YamlMap {
    let image = YamlMap::default()
        .with("repository", "")
        .with("tag", "")
        .with("digest", "")
        .with("pullPolicy", "");
    let account = YamlMap::default()
        .with("create", true)
        .with("name", "")
        .with("annotations", YamlMap::default());
    let map = YamlMap::default()
        .with_comment(
            &["The image; what is empty is as in kopf.yaml."],
            "image",
            image,
        )
        .with("imagePullSecrets", Yaml::List(Vec::new()))
        .with_comment(
            &["The number of Pods; null: as in kopf.yaml."],
            "replicas",
            Yaml::Scalar(Value::Null),
        )
        .with_comment(
            &[
                "Names or patterns of namespaces, or [] for all; null: as in kopf.yaml. With names alone, the",
                "permissions for objects in namespaces are restricted to these.",
            ],
            "watchNamespaces",
            Yaml::Scalar(Value::Null),
        )
        .with_comment(&["json, full or plain."], "logFormat", "json")
        .with_comment(
            &["More options of `run`, and more environment variables."],
            "extraArgs",
            Yaml::List(Vec::new()),
        )
        .with("env", Yaml::List(Vec::new()))
        .with("resources", Yaml::from(resources))
        .with_comment(
            &["The ServiceAccount; without a name, that of the release."],
            "serviceAccount",
            account,
        );
    let map = if operator.has_webhooks() {
        map.with_comment(
            &[
                "The writer of the webhook configurations and certificates: managed (the operator itself) or",
                "cert-manager; empty: as in kopf.yaml.",
            ],
            "webhooks",
            YamlMap::default().with("mode", ""),
        )
    } else {
        map
    };
    let switch = || YamlMap::default().with("enabled", Yaml::Scalar(Value::Null));
    map.with_comment(
        &["Objects for the Prometheus operator and for Grafana; null: as in kopf.yaml."],
        "metrics",
        YamlMap::default()
            .with("serviceMonitor", switch())
            .with("alerts", switch())
            .with("dashboard", switch()),
    )
    .with_comment(
        &["Only probes, metrics and webhooks reach the Pods; null: as in kopf.yaml."],
        "networkPolicy",
        switch(),
    )
    .with("podAnnotations", YamlMap::default())
    .with("priorityClassName", "")
    .with("nodeSelector", YamlMap::default())
    .with("tolerations", Yaml::List(Vec::new()))
    .with("affinity", YamlMap::default())
    .with_comment(
        &["The name of all objects; empty: made of the names of the release and of the operator."],
        "fullnameOverride",
        "",
    )
}

/// `values.schema.json`: what the values can be.
pub(super) fn schema(operator: &Operator) -> Value {
    let most = if operator.leader_election.is_some() {
        100
    } else {
        1
    };
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let switch = json!({
        "type": "object",
        "properties": {"enabled": {"type": ["boolean", "null"]}},
        "additionalProperties": false,
    });
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "image": {
                "type": "object",
                "properties": {
                    "repository": {"type": "string"},
                    "tag": {"type": "string"},
                    "digest": {"type": "string", "pattern": "^$|^[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,}$"},
                    "pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]},
                },
                "additionalProperties": false,
            },
            "imagePullSecrets": {"type": "array", "items": {"type": "object"}},
            "replicas": {
                "type": ["integer", "null"],
                "description": "more than one needs leader_election in kopf.yaml",
                "minimum": 0,
                "maximum": most,
            },
            "watchNamespaces": {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}},
            "logFormat": {"enum": ["", "json", "full", "plain"]},
            "extraArgs": {"type": "array", "items": {"type": ["string", "number", "boolean"]}},
            "env": {"type": "array", "items": {"type": "object"}},
            "resources": {"type": "object"},
            "serviceAccount": {
                "type": "object",
                "properties": {
                    "create": {"type": "boolean"},
                    "name": {"type": "string"},
                    "annotations": texts,
                },
                "additionalProperties": false,
            },
            "metrics": {
                "type": "object",
                "properties": {"serviceMonitor": switch, "alerts": switch, "dashboard": switch},
                "additionalProperties": false,
            },
            "networkPolicy": switch,
            "podAnnotations": texts,
            "priorityClassName": {"type": "string"},
            "nodeSelector": texts,
            "tolerations": {"type": "array", "items": {"type": "object"}},
            "affinity": {"type": "object"},
            "fullnameOverride": {"type": "string"},
        },
    });
    if operator.has_webhooks() {
        let owners = operator
            .possible_webhook_owners()
            .iter()
            .copied()
            .map(owner_word);
        let words: Vec<&str> = [""].into_iter().chain(owners).collect();
        schema["properties"]["webhooks"] = json!({
            "type": "object",
            "properties": {"mode": {"enum": words}},
            "additionalProperties": false,
        });
    }
    schema
}

fn is_set(path: &'static [&'static str]) -> HelmExpression {
    let is_empty = HelmExpression::Call("empty", vec![HelmExpression::Value(path)]);
    is_empty.negated()
}

/// The mapping with an entry of this key, if the chart's user sets it.
fn optional(map: YamlMap, path: &'static [&'static str], key: &str) -> YamlMap {
    let value = HelmExpression::Value(path);
    map.with_if(value.clone(), key, value)
}

#[cfg(test)]
mod tests {
    use super::split_image;

    #[test]
    fn an_image_is_split_behind_its_repository() {
        for (image, expected) in [
            ("a", ("a", "")),
            ("a:1", ("a", ":1")),
            ("host:5000/a", ("host:5000/a", "")),
            ("host:5000/t/a:1@sha256:0", ("host:5000/t/a", ":1@sha256:0")),
        ] {
            assert_eq!(split_image(image), expected);
        }
    }
}
