//! Alert rules and dashboards: Prometheus accepts them, and they name metrics that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use kopf_tests::{TestFailure, TestResult, rulecheck, workspace};
use regex_lite::Regex;
use serde_json::{Value, json};

/// The metrics with their labels; a test of the runtime compares the table with what is served.
const DOCUMENTED: &str = include_str!("../../../docs/observability.md");

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["job", "le"];

const MANIFEST: &str = "
apiVersion: kopf-gen.dev/v1
operator:
  name: watched
  leader_election: {}
  deploy: {alerts: true, dashboard: true}
resources:
  - builtin: v1/ConfigMap
    handlers: [{on: create, fn: create}]
    admission: [{validate: check, persistent: false}]
";

fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let rows = DOCUMENTED.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells.get(1)?.trim_matches('`');
        let labels = cells
            .get(3)?
            .split(',')
            .map(|it| it.trim().trim_matches('`'));
        let labels = labels.filter(|it| !it.is_empty()).map(str::to_owned);
        name.starts_with("kopf_")
            .then(|| (name.to_owned(), labels.collect()))
    });
    rows.collect()
}

/// An object of the deployment that [`make`] made.
fn deployed(folder: &Path, file: &str) -> Result<Value, TestFailure> {
    let text = std::fs::read_to_string(folder.join("watched/deploy/base").join(file))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// Makes an operator with all alerts and panels.
fn make(folder: &Path) -> TestResult {
    let kopf_gen = workspace::build_program("kopf-gen")?;
    for arguments in [&["new", "watched", "--quiet"][..], &["generate", "--quiet"]] {
        let root = folder.join("watched");
        let place = if root.exists() { &root } else { folder };
        let output = Command::new(&kopf_gen)
            .current_dir(place)
            .args(arguments)
            .output()?;
        assert!(output.status.success(), "{output:?}");
        std::fs::write(root.join("kopf.yaml"), MANIFEST)?;
    }
    Ok(())
}

/// Checks that a query names documented metrics, each with labels that it has.
fn check_query(query: &str, metrics: &BTreeMap<String, BTreeSet<String>>) -> TestResult {
    let metric = Regex::new("kopf_[a-z_]+")?;
    let label = Regex::new(r#"([a-z_]+)(?:=~|=)""#)?;
    let grouping = Regex::new(r"by \(([^)]*)\)")?;
    let named: Vec<&str> = metric.find_iter(query).map(|it| it.as_str()).collect();
    assert!(!named.is_empty(), "{query}");
    let mut known: BTreeSet<&str> = ADDED.into();
    for name in named {
        let labels = metrics.get(name.trim_end_matches("_bucket"));
        let labels = labels.ok_or_else(|| TestFailure::new(format!("{name} in {query}")))?;
        known.extend(labels.iter().map(String::as_str));
    }
    let matched = label.captures_iter(query);
    let mut used: Vec<String> = matched.map(|it| it[1].to_owned()).collect();
    for group in grouping.captures_iter(query) {
        used.extend(group[1].split(',').map(|it| it.trim().to_owned()));
    }
    for label in used {
        assert!(known.contains(label.as_str()), "{label} in {query}");
    }
    Ok(())
}

#[tokio::test]
async fn alerts_and_dashboards_name_metrics_that_exist() -> TestResult {
    let folder = tempfile::tempdir()?;
    make(folder.path())?;
    let metrics = documented();
    let rules = deployed(folder.path(), "alerts.yaml")?;
    let groups = &rules["spec"]["groups"];
    let file = folder.path().join("rules.yaml");
    std::fs::write(&file, json!({"groups": groups}).to_string())?;
    assert_eq!(rulecheck::check(&file).await?, "");
    std::fs::write(
        &file,
        json!({"groups": groups}).to_string().replace("sum", "sun("),
    )?;
    assert_ne!(rulecheck::check(&file).await?, "", "it finds errors");
    let rules = groups[0]["rules"].as_array().into_iter().flatten();
    let rules: Vec<&str> = rules.filter_map(|it| it["expr"].as_str()).collect();
    assert_eq!(rules.len(), 6);

    let dashboard = deployed(folder.path(), "dashboard.yaml")?;
    let dashboard = dashboard["data"]["watched.json"]
        .as_str()
        .unwrap_or_default();
    let dashboard: Value = serde_json::from_str(dashboard)?;
    let panels = dashboard["panels"].as_array().into_iter().flatten();
    let targets = panels.flat_map(|it| it["targets"].as_array().into_iter().flatten());
    let queries: Vec<&str> = targets.filter_map(|it| it["expr"].as_str()).collect();
    assert_eq!(queries.len(), 10);
    for query in rules.into_iter().chain(queries) {
        check_query(query, &metrics)?;
    }
    Ok(())
}
