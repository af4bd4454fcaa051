//! Behaviour of the real API server that the other suites rely on.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use kopf_tests::{Sandbox, TestResult};
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::json;

use super::code;

#[tokio::test]
async fn a_definition_is_served_as_soon_as_it_is_applied() -> TestResult {
    let sandbox = Sandbox::open("served").await?;

    let applied = sandbox
        .apply(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: $GROUP/v1
kind: Gadget
metadata: {name: one}
spec: {size: 3}
",
        )
        .await?;

    assert_eq!(applied.len(), 2);
    let gadgets = sandbox
        .objects(&format!("{}/v1", sandbox.group()), "Gadget")
        .await?;
    assert_eq!(gadgets.get("one").await?.data["spec"]["size"], 3);
    let invalid = gadgets
        .create("two", json!({"spec": {"size": "large"}}))
        .await;
    assert_eq!(code(invalid)?, 422, "the schema is enforced");
    Ok(())
}

#[tokio::test]
async fn a_watch_reports_an_object_added_modified_and_deleted() -> TestResult {
    let sandbox = Sandbox::open("watch").await?;
    let widgets = sandbox.define("Widget").await?;
    let start = widgets.api().list(&ListParams::default()).await?;
    let version = start.metadata.resource_version.unwrap_or_default();
    let events = widgets
        .api()
        .watch(&WatchParams::default(), &version)
        .await?;

    widgets.create("one", json!({"spec": {"size": 1}})).await?;
    widgets.merge("one", json!({"spec": {"size": 2}})).await?;
    widgets.delete("one").await?;

    let seen: Vec<String> = events
        .take(3)
        .map_ok(|event| summary(&event))
        .try_collect()
        .await?;
    assert_eq!(seen, ["added one 1", "modified one 2", "deleted one 2"]);
    Ok(())
}

fn summary(event: &WatchEvent<DynamicObject>) -> String {
    let (what, object) = match event {
        WatchEvent::Added(object) => ("added", object),
        WatchEvent::Modified(object) => ("modified", object),
        WatchEvent::Deleted(object) => ("deleted", object),
        other => return format!("{other:?}"),
    };
    let name = object.metadata.name.as_deref().unwrap_or_default();
    format!("{what} {name} {}", object.data["spec"]["size"])
}

#[tokio::test]
async fn status_changes_only_through_its_subresource_and_unknown_fields_are_pruned() -> TestResult {
    let sandbox = Sandbox::open("status").await?;
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    }});
    let widgets = sandbox.define_with("Widget", schema).await?;

    let body = json!({"spec": {"size": 1, "colour": "red"}, "status": {"ready": true}});
    let created = widgets.create("one", body).await?;
    assert_eq!(
        created.data["spec"],
        json!({"size": 1}),
        "an unknown field is pruned"
    );
    assert!(
        created.data.get("status").is_none(),
        "a status is not created with the object"
    );

    let changed = widgets.merge_status("one", json!({"ready": true})).await?;
    assert_eq!(changed.data["status"], json!({"ready": true}));
    assert_eq!(
        changed.metadata.generation,
        Some(1),
        "a status is no new generation"
    );

    let changed = widgets
        .merge(
            "one",
            json!({"spec": {"size": 2}, "status": {"ready": false}}),
        )
        .await?;
    assert_eq!(changed.data["status"], json!({"ready": true}));
    assert_eq!(changed.metadata.generation, Some(2));
    Ok(())
}

#[tokio::test]
async fn two_sandboxes_do_not_see_each_other() -> TestResult {
    let (left, right) = tokio::join!(Sandbox::open("twin"), Sandbox::open("twin"));
    let (left, right) = (left?, right?);
    let (ours, theirs) = tokio::join!(left.define("Widget"), right.define("Widget"));
    let (ours, theirs) = (ours?, theirs?);

    ours.create("same", json!({"spec": {"side": "left"}}))
        .await?;
    theirs
        .create("same", json!({"spec": {"side": "right"}}))
        .await?;
    ours.delete("same").await?;
    ours.wait_gone("same").await?;

    assert_eq!(theirs.get("same").await?.data["spec"]["side"], "right");
    let places = BTreeSet::from([
        left.namespace(),
        left.group(),
        right.namespace(),
        right.group(),
    ]);
    assert_eq!(places.len(), 4);
    Ok(())
}

#[tokio::test]
async fn a_dropped_sandbox_deletes_everything_also_objects_with_finalizers() -> TestResult {
    let (observer, sandbox) = (
        Sandbox::open("observer").await?,
        Sandbox::open("brief").await?,
    );
    let (namespace, group) = (sandbox.namespace().to_owned(), sandbox.group().to_owned());
    let widgets = sandbox.define("Widget").await?;
    widgets
        .create(
            "held",
            json!({"metadata": {"finalizers": ["kopf.test/hold"]}}),
        )
        .await?;

    drop((sandbox, widgets));

    let definitions = "CustomResourceDefinition";
    let definitions = observer
        .objects("apiextensions.k8s.io/v1", definitions)
        .await?;
    definitions.wait_gone(&format!("widgets.{group}")).await?;
    observer
        .objects("v1", "Namespace")
        .await?
        .wait_gone(&namespace)
        .await
}
