//! The YAML of the pages is accepted by kopf-gen.

use kopf_gen::diagnostic::{Diagnostics, Sources, Style, human};
use kopf_gen::load::manifest;
use serde_json::{Value, json};

use super::links::{pages_below, read};

/// The blocks of YAML in a page.
fn blocks(page: &str) -> Vec<String> {
    let parts = page
        .split("\n```")
        .filter_map(|part| part.strip_prefix("yaml\n"));
    parts.map(dedented).collect()
}

/// A block that is shown with the indentation of its place.
fn dedented(text: &str) -> String {
    let indents = text.lines().filter(|line| !line.trim().is_empty());
    let indent = indents
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let lines = text
        .lines()
        .map(|line| line.get(indent.unwrap_or(0)..).unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// A whole manifest around an excerpt, or nothing if it is not of a manifest.
fn whole(excerpt: &Value) -> Option<Value> {
    let handlers = |value: &Value| json!([{"crd": "crds/widgets.yaml", "handlers": value}]);
    let (operator, resources) = if excerpt.is_array() {
        (json!({}), handlers(excerpt))
    } else if excerpt["handlers"].is_array() || excerpt["uses"].is_array() {
        let mut resource = excerpt.clone();
        resource["crd"] = json!("crds/widgets.yaml");
        (json!({}), json!([resource]))
    } else if excerpt["settings"].is_object() {
        (json!({"settings": excerpt["settings"]}), json!([]))
    } else if excerpt["operator"].is_object() || excerpt["resources"][0].is_object() {
        let operator = excerpt["operator"].clone();
        let operator = if operator.is_null() {
            json!({})
        } else {
            operator
        };
        (operator, excerpt["resources"].clone())
    } else {
        return None;
    };
    let mut operator = operator;
    if operator["name"].is_null() {
        operator["name"] = json!("my-operator");
    }
    let resources = if resources.is_null() {
        json!([])
    } else {
        resources
    };
    Some(json!({"apiVersion": "kopf-gen.dev/v1", "operator": operator, "resources": resources}))
}

#[test]
fn the_manifests_of_all_pages_are_accepted() {
    let mut pages = pages_below("docs");
    pages.push("README.md".into());
    let (mut count, mut problems) = (0, Vec::new());
    for page in pages {
        for block in blocks(&read(&page)) {
            let excerpt: Value = match serde_saphyr::from_str(&block) {
                Ok(value) => value,
                Err(error) => {
                    problems.push(format!("{}: {error}\n{block}", page.display()));
                    continue;
                }
            };
            let Some(manifest) = whole(&excerpt) else {
                continue;
            };
            count += 1;
            let mut sources = Sources::new();
            let source = sources.add(page.display().to_string(), manifest.to_string());
            let mut diagnostics = Diagnostics::new();
            let manifest = manifest::parse(&sources, source, &mut diagnostics);
            if manifest.is_none() || diagnostics.has_errors() {
                let all = diagnostics
                    .iter()
                    .map(|it| human(it, &sources, Style::Plain));
                problems.push(format!("{block}\n{}", all.collect::<String>()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 30, "only {count} manifests");
}
