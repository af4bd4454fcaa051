//! The files of a Helm chart for an operator, below `deploy/chart/`.

use askama::Template;

use super::helm_permissions::{self, is_mode};
use super::object_names::ObjectNames;
use super::workload::{BUDGET_COMMENT, MONITOR_COMMENT, POLICY_COMMENT};
use super::{Document, alerts, helm_values, template, webhooks, workload};
use crate::helm_expression::HelmExpression;
use crate::load::manifest::ConfigurationOwner;
use crate::model::operator::Operator;
use crate::model::webhook_configuration::WebhookConfiguration;
use crate::plan::{ChartSource, YAML_BANNER};
use crate::yaml::{self, ChartDocument, ChartPart, YamlDocuments, YamlMap};

/// `templates/_helpers.tpl`: the names of a release.
#[derive(Debug, Template)]
#[template(path = "chart/helpers.txt", syntax = "chart", escape = "none")]
struct HelpersView<'a> {
    /// The name of the operator.
    name: &'a str,
    /// The watched namespaces.
    namespaces: HelmExpression,
    /// The names in a release with the operator's own name.
    webhook_configuration: HelmExpression,
    lease: HelmExpression,
    /// The end of the names of the webhook configurations in other releases.
    webhook_suffix: HelmExpression,
}

/// `templates/NOTES.txt`, which Helm prints after an installation.
#[derive(Debug, Template)]
#[template(path = "chart/notes.txt", syntax = "chart", escape = "none")]
struct NotesView<'a> {
    /// The name of the operator.
    name: &'a str,
    /// Whether the chart has definitions.
    has_definitions: bool,
}

/// A generated file.
pub(super) fn document(source: ChartSource<'_>) -> Document<'_> {
    let documents = match source {
        ChartSource::Metadata { name, version } => return Document::Yaml(metadata(name, version)),
        ChartSource::ValuesSchema(operator) => {
            return Document::Json(helm_values::schema(operator));
        }
        ChartSource::Helpers(operator) => return template(helpers(operator)),
        ChartSource::Notes {
            name,
            has_definitions,
        } => {
            return template(NotesView {
                name,
                has_definitions,
            });
        }
        ChartSource::Rbac(operator) => helm_permissions::documents(operator),
        ChartSource::Workload(operator) => deployment(operator),
        ChartSource::NetworkPolicy(operator) => network_policy(operator),
        ChartSource::Monitoring(operator) => monitoring(operator),
        ChartSource::Webhooks {
            operator,
            configurations,
        } => webhooks(operator, &configurations),
    };
    Document::Chart {
        banner: YAML_BANNER,
        documents,
    }
}

/// `values.yaml`, which is the user's.
pub(super) fn values(operator: &Operator) -> YamlDocuments {
    let map = helm_values::file(operator, &workload::resources());
    let banner: &[&str] = &[
        "This file is yours: the values of your chart. What it leaves out or leaves empty is as in kopf.yaml,",
        "from which the templates follow.",
    ];
    yaml::documents([(banner, map)])
}

/// `Chart.yaml`.
fn metadata(name: &str, version: &str) -> YamlDocuments {
    let map = YamlMap::default()
        .with("apiVersion", "v2")
        .with("name", name)
        .with("description", format!("The operator {name}"))
        .with("type", "application")
        .with_comment(&["Both are the version in Cargo.toml."], "version", version)
        .with("appVersion", version);
    yaml::documents([(&[YAML_BANNER], map)])
}

fn helpers(operator: &Operator) -> HelpersView<'_> {
    let admission = &operator.admission;
    let suffix = if admission.is_named {
        admission.name.as_str()
    } else {
        "kopf-gen.dev"
    };
    let lease = operator.leader_election.as_ref();
    HelpersView {
        name: &operator.name,
        namespaces: helm_values::watched_namespaces(operator),
        webhook_configuration: HelmExpression::text(&admission.name),
        lease: HelmExpression::text(lease.map_or("", |it| &it.lease)),
        webhook_suffix: HelmExpression::text(suffix),
    }
}

fn deployment(operator: &Operator) -> Vec<ChartDocument> {
    let names = ObjectNames::Release(operator);
    let budget = ChartPart::If(helm_values::has_replicas(operator));
    vec![
        object(ChartPart::Always, &[], workload::workload(names)),
        object(
            budget,
            &[BUDGET_COMMENT],
            workload::disruption_budget(names),
        ),
    ]
}

fn network_policy(operator: &Operator) -> Vec<ChartDocument> {
    let names = ObjectNames::Release(operator);
    let part = ChartPart::If(helm_values::has_network_policy(operator));
    vec![object(part, &[POLICY_COMMENT], workload::policy(names))]
}

fn monitoring(operator: &Operator) -> Vec<ChartDocument> {
    let names = ObjectNames::Release(operator);
    let monitor = ChartPart::If(helm_values::has_monitor(operator));
    let alerts = ChartPart::If(helm_values::has_alerts(operator));
    let dashboard = ChartPart::If(helm_values::has_dashboard(operator));
    vec![
        object(monitor.clone(), &[], workload::metrics_service(names)),
        object(monitor, &[MONITOR_COMMENT], workload::monitor(names)),
        object(alerts, &[], alerts::alert_rules(names)),
        object(
            dashboard,
            &[alerts::DASHBOARD_COMMENT],
            alerts::dashboard_object(names),
        ),
    ]
}

fn webhooks(operator: &Operator, configurations: &[WebhookConfiguration]) -> Vec<ChartDocument> {
    let names = ObjectNames::Release(operator);
    let service = object(
        ChartPart::Always,
        &[webhooks::SERVICE_COMMENT],
        webhooks::service(names),
    );
    let objects_of = |owner: &ConfigurationOwner| match owner {
        ConfigurationOwner::Managed => webhooks::filled_by_operator(names),
        ConfigurationOwner::CertManager => webhooks::certified(names, configurations),
    };
    let owners = operator.possible_webhook_owners().iter();
    let maintained = owners.flat_map(|owner| {
        let part = ChartPart::If(is_mode(operator, *owner));
        let objects = objects_of(owner).into_iter();
        objects.map(move |(why, map)| object(part.clone(), why, map))
    });
    [service].into_iter().chain(maintained).collect()
}

fn object(part: ChartPart, comment: &[&str], map: YamlMap) -> ChartDocument {
    ChartDocument {
        part,
        comment: comment.iter().map(|&line| line.to_owned()).collect(),
        map,
    }
}
