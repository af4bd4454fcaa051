//! Alert rules and a Grafana dashboard for the metrics of an operator.

use serde_json::{Value, json};

use super::object_names::{ObjectNames, ObjectPlace};
use crate::helm_expression::HelmExpression;
use crate::model::operator::Operator;
use crate::plan::YAML_BANNER;
use crate::yaml::{self, Yaml, YamlDocuments, YamlMap};

/// Outcomes after which a handler is not called again, or that are bugs.
const FAILURES: &str = "permanent|error|panicked|timed-out|undecodable|exhausted";

pub(super) const DASHBOARD_COMMENT: &str =
    "Grafana finds it by its label, if it looks for dashboards in this namespace.";

/// An alert: its name, its query, how long it has to hold, and what it means.
struct Alert {
    name: &'static str,
    query: String,
    wait: &'static str,
    severity: &'static str,
    summary: String,
}

/// The queries of a panel of the dashboard, each with its legend.
struct Panel {
    title: &'static str,
    unit: &'static str,
    queries: Vec<(String, &'static str)>,
}

/// `deploy/base/alerts.yaml`.
pub(super) fn alerts(operator: &Operator) -> YamlDocuments {
    let names = ObjectNames::Manifest(operator);
    yaml::documents([(&[YAML_BANNER], alert_rules(names))])
}

/// The alert rules.
pub(super) fn alert_rules(names: ObjectNames<'_>) -> YamlMap {
    let rules = rules(names.operator(), names.word());
    let rules = rules.into_iter().map(|alert| {
        YamlMap::default()
            .with("alert", alert.name)
            .with("expr", names.filled(&alert.query))
            .with("for", alert.wait)
            .with(
                "labels",
                YamlMap::default().with("severity", alert.severity),
            )
            .with(
                "annotations",
                YamlMap::default().with("summary", names.filled(&alert.summary)),
            )
    });
    let group = YamlMap::default()
        .with("name", names.name())
        .with("rules", Yaml::list(rules));
    YamlMap::object("monitoring.coreos.com/v1", "PrometheusRule")
        .with(
            "metadata",
            names.labelled(names.name(), ObjectPlace::Own, YamlMap::default()),
        )
        .with(
            "spec",
            YamlMap::default().with("groups", Yaml::list([group])),
        )
}

/// `deploy/base/dashboard.yaml`.
pub(super) fn dashboard(operator: &Operator) -> YamlDocuments {
    let names = ObjectNames::Manifest(operator);
    let banner: &[&str] = &[YAML_BANNER, DASHBOARD_COMMENT];
    yaml::documents([(banner, dashboard_object(names))])
}

/// The dashboard, as Grafana finds it.
pub(super) fn dashboard_object(names: ObjectNames<'_>) -> YamlMap {
    let file = format!("{}.json", names.word());
    let text = names.filled(&grafana(names).to_string());
    let found = YamlMap::default().with("grafana_dashboard", "1");
    let data = match (names.filled(&file), text) {
        // The name of the file is a key.
        (Yaml::Computed(file), Yaml::Computed(text)) => {
            HelmExpression::Call("dict", vec![file, text]).into()
        }
        (_, text) => Yaml::from(YamlMap::default().with(&file, text)),
    };
    YamlMap::object("v1", "ConfigMap")
        .with(
            "metadata",
            names.labelled(names.suffixed("-dashboard"), ObjectPlace::Own, found),
        )
        .with("data", data)
}

/// The metrics of this operator among those of others.
fn selector(name: &str) -> String {
    format!("job=\"{name}-metrics\"")
}

fn rules(operator: &Operator, name: &str) -> Vec<Alert> {
    let ours = selector(name);
    let alert = |name, query, wait, severity, summary| Alert {
        name,
        query,
        wait,
        severity,
        summary,
    };
    let mut rules = vec![
        alert(
            "OperatorNotReady",
            format!("absent(kopf_ready{{{ours}}}) or max(kopf_ready{{{ours}}}) == 0"),
            "5m",
            "critical",
            format!("No replica of {name} handles objects: see /readyz of its Pods."),
        ),
        alert(
            "OperatorHandlerFails",
            format!(
                "sum by (kind, handler) (increase(kopf_handler_outcomes_total{{{ours}, outcome=~\"{FAILURES}\"}}[15m])) > 0"
            ),
            "1m",
            "warning",
            format!("{{{{ $labels.handler }}}} of {name} fails for {{{{ $labels.kind }}}}."),
        ),
        alert(
            "OperatorQueueWaits",
            format!("max(kopf_queue_oldest_seconds{{{ours}}}) > 300"),
            "10m",
            "warning",
            format!("Objects wait for {name} for more than five minutes."),
        ),
        alert(
            "OperatorApiErrors",
            format!(
                "sum(rate(kopf_api_requests_total{{{ours}, code=~\"5..\"}}[5m])) / sum(rate(kopf_api_requests_total{{{ours}}}[5m])) > 0.1"
            ),
            "15m",
            "warning",
            format!("The API server fails for more than a tenth of the requests of {name}."),
        ),
    ];
    if operator.leader_election.is_some() {
        rules.push(alert(
            "OperatorWithoutLeader",
            format!("sum(kopf_leader{{{ours}}}) == 0"),
            "5m",
            "critical",
            format!("No replica of {name} is the leader."),
        ));
    }
    if operator.has_webhooks() {
        rules.push(alert(
            "OperatorWebhookFails",
            format!(
                "sum by (kind, webhook) (increase(kopf_webhook_reviews_total{{{ours}, verdict=\"failed\"}}[15m])) > 0"
            ),
            "1m",
            "warning",
            format!("{{{{ $labels.webhook }}}} of {name} fails for {{{{ $labels.kind }}}}."),
        ));
    }
    rules
}

fn panels(operator: &Operator, name: &str) -> Vec<Panel> {
    let ours = selector(name);
    let rate = |metric: &str, by: &str| format!("sum by ({by}) (rate({metric}{{{ours}}}[5m]))");
    let slowest = |metric: &str, by: &str| {
        format!("histogram_quantile(0.95, sum by (le, {by}) (rate({metric}_bucket{{{ours}}}[5m])))")
    };
    let value = |metric: &str| format!("sum({metric}{{{ours}}})");
    let panel = |title, unit, queries| Panel {
        title,
        unit,
        queries,
    };
    let mut panels = vec![
        panel(
            "Attempts of handlers",
            "ops",
            vec![(
                rate("kopf_handler_outcomes_total", "handler, outcome"),
                "{{handler}} {{outcome}}",
            )],
        ),
        panel(
            "Duration of handlers, 95th percentile",
            "s",
            vec![(
                slowest("kopf_handler_duration_seconds", "handler"),
                "{{handler}}",
            )],
        ),
        panel(
            "Objects",
            "short",
            vec![
                (value("kopf_queue_depth"), "waiting"),
                (value("kopf_workers"), "being handled"),
                (value("kopf_daemons"), "daemons"),
                (value("kopf_timers"), "timers"),
            ],
        ),
        panel(
            "Longest wait for a worker",
            "s",
            vec![(format!("max(kopf_queue_oldest_seconds{{{ours}}})"), "wait")],
        ),
        panel(
            "Requests to the API server",
            "reqps",
            vec![(
                rate("kopf_api_requests_total", "verb, code"),
                "{{verb}} {{code}}",
            )],
        ),
        panel(
            "Watches that were opened again",
            "ops",
            vec![(
                rate("kopf_watch_restarts_total", "kind, reason"),
                "{{kind}} {{reason}}",
            )],
        ),
    ];
    if operator.has_webhooks() {
        panels.push(panel(
            "Reviews of webhooks",
            "ops",
            vec![(
                rate("kopf_webhook_reviews_total", "webhook, verdict"),
                "{{webhook}} {{verdict}}",
            )],
        ));
    }
    panels
}

/// The dashboard as Grafana imports it: two panels in a row.
fn grafana(names: ObjectNames<'_>) -> Value {
    let (operator, name) = (names.operator(), names.word());
    let source = json!({"type": "prometheus", "uid": "${source}"});
    let panels = panels(operator, name).into_iter().enumerate();
    let panels = panels.map(|(index, panel)| {
        let targets = panel
            .queries
            .iter()
            .zip('A'..)
            .map(|((query, legend), id)| {
                json!({
                    "refId": id.to_string(),
                    "datasource": source,
                    "expr": query,
                    "legendFormat": legend,
                })
            });
        json!({
            "id": index + 1,
            "type": "timeseries",
            "title": panel.title,
            "datasource": source,
            "gridPos": {"x": 12 * (index % 2), "y": 8 * (index / 2), "w": 12, "h": 8},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": targets.collect::<Vec<_>>(),
        })
    });
    // Grafana gives an id to what has none, so that each release has its own.
    let id = (!names.is_chart()).then(|| name.chars().take(40).collect::<String>());
    json!({
        "title": name,
        "uid": id,
        "schemaVersion": 39,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [
            {"name": "source", "type": "datasource", "query": "prometheus", "label": "Source"},
        ]},
        "panels": panels.collect::<Vec<_>>(),
    })
}
