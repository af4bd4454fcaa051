//! Two processes of one operator that want the same child otherwise, as two versions of it do.

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{ChildOf, HandlerResult, ReconcileContext, ResourceHandlers};
use kopf_tests::{FaultProxy, TestResult, eventually};
use serde_json::{Value, json};

use super::strategies::RecreatedChildren;
use super::{WidgetChildren, config_maps, maps_of, reconcile, wait_for_size};
use crate::fixture::HandlerFixture;
use crate::indices::CONFIG_MAP;

/// How often each process changes the child within a minute: as a change of its own, and to take it
/// back.
const MAX_CHANGES: usize = 1 + 3;

/// What a version of the operator wants.
#[derive(Debug, Clone, Copy)]
enum Version {
    /// The ConfigMaps with the sizes of the object.
    Old,
    /// The same with a mark.
    New,
    /// None of them.
    Without,
}

async fn keep<C>(version: Version, cx: &mut ReconcileContext<Value, C>) -> HandlerResult
where
    ConfigMap: ChildOf<C>,
{
    let maps = maps_of(cx.raw()).into_iter();
    for mut map in maps.filter(|_| !matches!(version, Version::Without)) {
        if let (Version::New, Some(data)) = (version, &mut map.data) {
            data.insert("size".to_owned(), "new".to_owned());
        }
        cx.apply(map).await?;
    }
    Ok(())
}

fn handlers<C: 'static>(fixture: &HandlerFixture, version: Version) -> ResourceHandlers
where
    ConfigMap: ChildOf<C>,
{
    let resource = fixture.resource().child::<C, ConfigMap>(CONFIG_MAP);
    let resource = match version {
        Version::Old => {
            resource.reconcile::<C>(reconcile(), |_, cx| Box::pin(keep(Version::Old, cx)))
        }
        Version::New => {
            resource.reconcile::<C>(reconcile(), |_, cx| Box::pin(keep(Version::New, cx)))
        }
        Version::Without => {
            resource.reconcile::<C>(reconcile(), |_, cx| Box::pin(keep(Version::Without, cx)))
        }
    };
    resource.build()
}

/// The number of requests by which a process has changed the child.
fn writes(proxy: &FaultProxy) -> usize {
    let requests = proxy.requests();
    let writes = requests.iter().filter(|it| {
        it.uri.contains("/configmaps/a") && [Method::PATCH, Method::DELETE].contains(&it.method)
    });
    writes.count()
}

/// Runs the old version and another one until one of them says that it waits. A change takes at most
/// this number of requests.
async fn fight<C: 'static>(name: &str, other: Version, requests: usize) -> TestResult
where
    ConfigMap: ChildOf<C>,
{
    let mut fixture = HandlerFixture::new(name).await?;
    let (old, new) = (
        handlers::<C>(&fixture, Version::Old),
        handlers::<C>(&fixture, other),
    );
    let (old_proxy, old) = fixture.start_through_proxy(old).await?;
    let (new_proxy, new) = fixture.start_through_proxy(new).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    let waits = |it: &kube::api::DynamicObject| {
        let mut annotations = it.metadata.annotations.iter().flat_map(|it| it.values());
        annotations.any(|it| it.contains("it again and again"))
    };
    let waiting = fixture.objects.wait_until("one", "one waits", waits);
    waiting.await?;
    new.stop().await?;
    let written = writes(&old_proxy) + writes(&new_proxy);
    let admitted = 2 * (1 + MAX_CHANGES * requests);
    assert!(written <= admitted, "{written} of {admitted} writes");

    // What users change is not a takeback.
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    wait_for_size(&config_maps(&fixture).await?, "a", "2").await?;
    eventually("the old version has nothing to wait for", async || {
        let object = fixture.objects.get("one").await.ok()?;
        (!waits(&object)).then_some(())
    })
    .await?;
    old.stop().await
}

#[tokio::test]
async fn two_versions_that_change_a_child_in_turn_wait_for_each_other() -> TestResult {
    fight::<WidgetChildren>("two-versions", Version::New, 1).await
}

#[tokio::test]
async fn a_version_that_deletes_what_the_other_makes_waits() -> TestResult {
    fight::<WidgetChildren>("two-versions-deleted", Version::Without, 1).await
}

#[tokio::test]
async fn two_versions_that_make_a_child_anew_in_turn_wait_for_each_other() -> TestResult {
    // It is deleted, made in vain as the other one was faster, and made.
    fight::<RecreatedChildren>("two-versions-recreated", Version::New, 3).await
}
