//! Deletions of more than one object: the definition of the kind, a namespace, a crowd, and an
//! object at the limit of the size.

use std::time::Duration;

use fastrand::Rng;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kopf_tests::TestFailure;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

use super::until_done;
use crate::stage::Stage;
use crate::workload::PROBE;

/// The number of concurrent requests for a crowd.
const CONCURRENCY: usize = 16;

/// The sizes of objects near the limit of etcd, which is 1.5 MiB for a request.
const LARGE: std::ops::Range<usize> = 900_000..1_500_000;

/// Deletes the definition with all objects, and defines the kind again.
pub(super) async fn definition(stage: &Stage) -> Result<(), TestFailure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(stage.sandbox.client());
    let name = format!("{}.{}", stage.widgets.plural, stage.widgets.group);
    let params = DeleteParams::default();
    until_done(async || match definitions.delete(&name, &params).await {
        Err(kube::Error::Api(status)) => status.is_not_found(),
        _ => false,
    })
    .await;
    until_done(async || stage.sandbox.define("Widget").await.is_ok()).await;
    until_done(async || {
        let probe = stage.here(&stage.widgets).get_opt(PROBE).await;
        matches!(probe, Ok(Some(_))) || stage.create(PROBE).await.is_ok()
    })
    .await;
    Ok(())
}

/// Deletes the second namespace with all objects, and creates it again.
pub(super) async fn namespace(stage: &Stage) -> Result<(), TestFailure> {
    let namespaces: Api<Namespace> = Api::all(stage.sandbox.client());
    let (name, params) = (stage.second_namespace(), DeleteParams::default());
    stage.note_namespace_deleted(&name);
    until_done(async || match namespaces.delete(&name, &params).await {
        Err(kube::Error::Api(status)) => status.is_not_found(),
        _ => false,
    })
    .await;
    until_done(async || stage.create_second_namespace().await.is_ok()).await;
    Ok(())
}

/// Creates many objects and deletes them at once.
pub(super) async fn crowd(stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
    let objects = stage.here(&stage.widgets);
    for_crowd(stage.crowd, async |name| {
        until_done(async || stage.create(name).await.is_ok()).await;
    })
    .await;
    sleep(lasts).await;
    // All of them are asked to go before the first one is waited for.
    for_crowd(stage.crowd, async |name| {
        request_deletion(&objects, name).await
    })
    .await;
    for_crowd(stage.crowd, async |name| delete(&objects, name).await).await;
    Ok(())
}

/// Acts on each object of a crowd, on some of them at once.
async fn for_crowd(count: usize, act: impl AsyncFn(&str)) {
    let act = &act;
    stream::iter(0..count)
        .for_each_concurrent(CONCURRENCY, async |number| {
            act(&format!("crowd{number}")).await;
        })
        .await;
}

/// Creates an object that is nearly too large, edits it, and deletes it.
pub(super) async fn large(stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
    let mut random = Rng::with_seed(lasts.subsec_nanos().into());
    let objects = stage.here(&stage.widgets);
    let mut object = DynamicObject::new("large", &stage.widgets);
    // Random letters, which no compression makes small.
    let blob: String = (0..random.usize(LARGE))
        .map(|_| random.alphanumeric())
        .collect();
    object.data = json!({"spec": {"edit": 0, "size": 1, "blob": blob}});
    let Ok(created) = objects.create(&PostParams::default(), &object).await else {
        return Ok(());
    };
    stage.note_rejected(created.metadata.uid.as_deref().unwrap_or_default());
    sleep(lasts).await;
    let edit = json!({"spec": {"edit": 1}});
    let _ = objects
        .patch("large", &PatchParams::default(), &Patch::Merge(&edit))
        .await;
    sleep(lasts).await;
    delete(&objects, "large").await;
    Ok(())
}

/// Asks the API server to delete an object, and does not wait for its end.
async fn request_deletion(objects: &Api<DynamicObject>, name: &str) {
    let params = DeleteParams::background();
    until_done(async || match objects.delete(name, &params).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => status.is_not_found(),
        Err(_) => false,
    })
    .await;
}

/// Deletes an object, and waits for its end.
async fn delete(objects: &Api<DynamicObject>, name: &str) {
    let params = DeleteParams::background();
    until_done(async || match objects.delete(name, &params).await {
        Err(kube::Error::Api(status)) => status.is_not_found(),
        _ => false,
    })
    .await;
}
