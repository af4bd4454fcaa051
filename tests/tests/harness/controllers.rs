//! Behaviour of the controller manager: garbage collection, namespaces, service accounts.

use kopf_tests::{Sandbox, TestResult, eventually};
use serde_json::json;

use super::code;

#[tokio::test]
async fn the_garbage_collector_deletes_dependents_of_a_deleted_owner() -> TestResult {
    let sandbox = Sandbox::open("owner").await?;
    let widgets = sandbox.define("Widget").await?;
    let maps = sandbox.objects("v1", "ConfigMap").await?;
    let owner = widgets.create("owner", json!({})).await?;
    let reference = json!({
        "apiVersion": widgets.resource().api_version,
        "kind": "Widget",
        "name": "owner",
        "uid": owner.metadata.uid,
    });
    maps.create(
        "owned",
        json!({"metadata": {"ownerReferences": [reference]}}),
    )
    .await?;
    maps.create("free", json!({})).await?;

    widgets.delete("owner").await?;

    maps.wait_gone("owned").await?;
    maps.get("free").await?;
    Ok(())
}

#[tokio::test]
async fn a_finalizer_blocks_deletion_until_it_is_removed() -> TestResult {
    let sandbox = Sandbox::open("finalizer").await?;
    let widgets = sandbox.define("Widget").await?;
    let held = json!({"metadata": {"finalizers": ["kopf.test/hold"]}});
    widgets.create("held", held).await?;

    widgets.delete("held").await?;
    let marked = widgets.get("held").await?;
    assert!(
        marked.metadata.deletion_timestamp.is_some(),
        "it is marked and still exists"
    );
    let revived = widgets
        .merge(
            "held",
            json!({"metadata": {"finalizers": ["kopf.test/new"]}}),
        )
        .await;
    assert_eq!(
        code(revived)?,
        422,
        "no finalizer can be added to it any more"
    );

    widgets
        .merge("held", json!({"metadata": {"finalizers": null}}))
        .await?;
    widgets.wait_gone("held").await
}

#[tokio::test]
async fn a_deleted_namespace_goes_away_with_its_objects() -> TestResult {
    let sandbox = Sandbox::open("namespace").await?;
    let (namespaces, maps) = (
        sandbox.objects("v1", "Namespace").await?,
        sandbox.objects("v1", "ConfigMap").await?,
    );
    maps.create("inside", json!({"data": {"key": "value"}}))
        .await?;

    namespaces.delete(sandbox.namespace()).await?;

    namespaces.wait_gone(sandbox.namespace()).await?;
    assert_eq!(code(maps.get("inside").await)?, 404);
    Ok(())
}

#[tokio::test]
async fn a_namespace_gets_its_default_service_account() -> TestResult {
    let sandbox = Sandbox::open("account").await?;
    let accounts = sandbox.objects("v1", "ServiceAccount").await?;

    eventually("there is a default account", async || {
        accounts.get("default").await.ok()
    })
    .await?;
    Ok(())
}
