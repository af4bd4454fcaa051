//! The handled objects: defines their kind, creates and lists them.

use std::ops::Range;

use clap::ValueEnum;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kopf_tests::{Objects, Sandbox, TestFailure, TestResult};
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

/// The number of concurrent creations.
const CONCURRENCY: usize = 16;

/// Whether the kind has a status subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusKind {
    /// One write brings the result and the record of success
    Field,
    /// The result needs a write of its own
    Subresource,
}

// === impl StatusKind ===

impl StatusKind {
    /// The value of the variable `STATUS` of the operators.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::Subresource => "subresource",
        }
    }
}

/// Defines the kind in a sandbox.
pub(crate) async fn define(sandbox: &Sandbox, status: StatusKind) -> Result<Objects, TestFailure> {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
    let mut version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
    });
    if status == StatusKind::Subresource {
        version["subresources"] = json!({"status": {}});
    }
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.$GROUP"},
        "spec": {
            "group": "$GROUP",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [version],
        },
    });
    sandbox.apply(&definition.to_string()).await?;
    let group = format!("{}/v1", sandbox.group());
    sandbox.objects(&group, "Widget").await
}

/// Creates objects named `w0`, `w1` and so on.
pub(crate) async fn create(objects: &Objects, count: usize, spec: &Value) -> TestResult {
    create_each(objects, 0..count, &json!({"spec": spec})).await
}

/// Creates objects in the state that an operator leaves after their creation is handled.
pub(crate) async fn create_handled(
    objects: &Objects,
    numbers: Range<usize>,
    spec: &Value,
) -> TestResult {
    let handled = format!("{}\n", json!({"spec": spec}));
    let body = json!({
        "metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": handled}},
        "spec": spec,
        "status": {"create_fn": {"size": 1}},
    });
    create_each(objects, numbers, &body).await
}

async fn create_each(objects: &Objects, numbers: Range<usize>, body: &Value) -> TestResult {
    stream::iter(numbers)
        .map(|number| async move {
            let name = format!("w{number}");
            objects.create(&name, body.clone()).await.map(drop)
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// Lists all objects.
pub(crate) async fn list(objects: &Objects) -> Result<Vec<DynamicObject>, TestFailure> {
    let mut all = Vec::new();
    let mut page = ListParams::default().limit(500);
    loop {
        let mut list = objects.api().list(&page).await?;
        all.append(&mut list.items);
        match list.metadata.continue_ {
            Some(token) if !token.is_empty() => page = page.continue_token(&token),
            _ => return Ok(all),
        }
    }
}

/// Whether an object is handled: its last handled state is the current one, and no progress is left.
pub(crate) fn is_settled(object: &DynamicObject) -> bool {
    let Some(annotations) = &object.metadata.annotations else {
        return false;
    };
    let handled = annotations
        .get("kopf.zalando.org/last-handled-configuration")
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .unwrap_or_default();
    let ours = annotations
        .keys()
        .filter(|it| it.starts_with("kopf.zalando.org/"));
    let known = ["last-handled-configuration", "last-seen-states"];
    handled["spec"] == object.data["spec"]
        && ours
            .filter_map(|it| it.split_once('/'))
            .all(|(_, name)| known.contains(&name))
}
