//! Many owners with a child each, of kinds of both scopes: what they cost in requests.
//!
//! `tests/long owners` has 5,000 of them.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{OPERATOR_LABEL, Resource, ResourceHandlers, ResourceSpec, Scope};
use kopf_tests::{FaultProxy, Objects, TestFailure, TestResult, eventually};
use kube::api::ListParams;
use serde_json::json;

use super::{WidgetChildren, config_maps, keep_maps, reconcile};
use crate::fixture::{HandlerFixture, HandlerScripts};
use crate::indices::CONFIG_MAP;

/// The owners of the short form.
const OWNERS: usize = 60;

/// The requests of the test itself at once.
const CONCURRENCY: usize = 16;

/// The waits for one more child: a busy machine takes long until the lists of many objects are read.
const WAITS: usize = 10;

/// The requests of an operator about single objects.
#[derive(Debug, PartialEq, Eq)]
struct SingleRequests {
    child_reads: usize,
    child_writes: usize,
    owner_reads: usize,
    owner_writes: usize,
}

fn owners() -> Result<usize, TestFailure> {
    match std::env::var("KOPF_OWNERS") {
        Ok(text) => Ok(text.parse()?),
        Err(_) => Ok(OWNERS),
    }
}

fn handlers(owner: Resource<serde_json::Value, HandlerScripts>) -> ResourceHandlers {
    owner
        .child::<WidgetChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<WidgetChildren>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .build()
}

/// The requests so far; those after `from`, which is moved to the end.
fn requests(proxy: &FaultProxy, from: &mut usize, plural: &str) -> SingleRequests {
    let all = proxy.requests();
    let new = &all[*from..];
    *from = all.len();
    let count = |plural: &str, is_read: bool| {
        let part = format!("/{plural}/");
        let fitting = new.iter().filter(|it| it.uri.contains(&part));
        fitting
            .filter(|it| (it.method == Method::GET) == is_read)
            .count()
    };
    SingleRequests {
        child_reads: count("configmaps", true),
        child_writes: count("configmaps", false),
        owner_reads: count(plural, true),
        owner_writes: count(plural, false),
    }
}

/// The objects of a list that fulfil a condition.
async fn count(
    objects: &Objects,
    labels: &str,
    counts: impl Fn(&kube::api::PartialObjectMeta<kube::api::DynamicObject>) -> bool,
) -> Option<usize> {
    let params = ListParams::default().labels(labels);
    let listed = objects.api().list_metadata(&params).await.ok()?;
    Some(listed.items.iter().filter(|it| counts(it)).count())
}

/// Waits as long as several other waits.
async fn patiently(
    what: &str,
    check: impl AsyncFn() -> Option<usize>,
) -> Result<usize, TestFailure> {
    for _ in 1..WAITS {
        if let Ok(found) = eventually(what, &check).await {
            return Ok(found);
        }
    }
    eventually(what, &check).await
}

/// Waits until there are `wanted` children, as long as more and more come.
async fn wait_for_children(maps: &Objects, wanted: usize) -> TestResult {
    let labels = format!("{OPERATOR_LABEL}=fixture");
    let mut known = 0;
    while known < wanted {
        known = patiently("there are more children", async || {
            let now = count(maps, &labels, |_| true).await?;
            (now > known).then_some(now)
        })
        .await?;
    }
    Ok(())
}

/// Waits until the complete call for each owner is recorded, as long as more and more are.
async fn wait_for_records(objects: &Objects, wanted: usize) -> TestResult {
    let mut known = 0;
    while known < wanted {
        known = patiently("more calls are recorded", async || {
            let now = count(objects, "", |it| {
                let annotations = it.metadata.annotations.iter().flat_map(|it| it.values());
                let mut annotations = annotations.into_iter();
                annotations.any(|text| text.contains("ConfigMap"))
            });
            let now = now.await?;
            (now > known).then_some(now)
        })
        .await?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "figures for the documentation")]
async fn check(fixture: &mut HandlerFixture, spec: ResourceSpec, owners: &Objects) -> TestResult {
    let wanted = self::owners()?;
    let maps = config_maps(fixture).await?;
    let namespace = fixture.sandbox.namespace().to_owned();
    stream::iter(0..wanted)
        .map(|at| {
            let maps = json!({format!("map-{at}"): {"size": "1"}});
            let body = json!({"spec": {"namespace": namespace, "maps": maps}});
            async move { owners.create(&format!("owner-{at}"), body).await.map(drop) }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    let resource = |fixture: &HandlerFixture| Resource::new(spec, &fixture.scripts);
    let handled = handlers(resource(fixture));
    let (proxy, operator) = fixture.start_through_proxy(handled).await?;
    wait_for_children(&maps, wanted).await?;
    wait_for_records(owners, wanted).await?;
    let mut from = 0;
    let first = requests(&proxy, &mut from, spec.plural);
    println!("{wanted} {}: {first:?}", spec.plural);
    // Whose a child is that may exist is asked once, and each of them is applied once.
    assert_eq!(first.child_reads, wanted);
    assert_eq!(first.child_writes, wanted);
    assert_eq!((first.owner_reads, first.owner_writes), (0, wanted));

    // Children that are deleted come back, for as many requests.
    let deleted = wanted / 5;
    for at in 0..deleted {
        maps.delete(&format!("map-{at}")).await?;
    }
    wait_for_children(&maps, wanted).await?;
    operator.stop().await?;
    let repaired = requests(&proxy, &mut from, spec.plural);
    println!("{deleted} children deleted: {repaired:?}");
    assert_eq!(repaired.child_writes, deleted);
    assert_eq!((repaired.owner_reads, repaired.owner_writes), (0, 0));

    // A start over healthy children costs lists and watches only.
    while fixture
        .next_report_within(std::time::Duration::ZERO)
        .await
        .is_some()
    {}
    let handled = handlers(resource(fixture));
    let (proxy, operator) = fixture.start_through_proxy(handled).await?;
    for _ in 0..wanted {
        let report = fixture.next_report().await;
        assert!(report.ends_with(": listed"), "{report}");
    }
    operator.stop().await?;
    let again = requests(&proxy, &mut 0, spec.plural);
    println!("started again: {again:?}");
    let nothing = SingleRequests {
        child_reads: 0,
        child_writes: 0,
        owner_reads: 0,
        owner_writes: 0,
    };
    assert_eq!(again, nothing);
    Ok(())
}

#[tokio::test]
async fn many_owners_of_a_namespace_cost_no_more_requests_than_needed() -> TestResult {
    let mut fixture = HandlerFixture::new("many").await?;
    let (spec, objects) = (fixture.spec(), fixture.objects.clone());
    check(&mut fixture, spec, &objects).await
}

#[tokio::test]
async fn many_owners_of_the_cluster_cost_no_more_requests_than_needed() -> TestResult {
    let mut fixture = HandlerFixture::new("many-of-cluster").await?;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.$GROUP"},
        "spec": {
            "group": "$GROUP",
            "scope": "Cluster",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    });
    fixture.sandbox.apply(&definition.to_string()).await?;
    let spec = ResourceSpec {
        kind: "Gadget",
        plural: "gadgets",
        scope: Scope::Cluster,
        ..fixture.spec()
    };
    let group = format!("{}/v1", fixture.sandbox.group());
    let gadgets = fixture.sandbox.objects(&group, "Gadget").await?;
    check(&mut fixture, spec, &gadgets).await
}
