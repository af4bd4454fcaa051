//! Many owners with a child each, of kinds of both scopes: what they cost in requests.
//!
//! `tests/long owners` has 5,000 of them.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{OPERATOR_LABEL, Resource, ResourceHandlers, ResourceSpec, Scope};
use kopf_tests::sandbox::DEFAULT_TIMEOUT;
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

/// The waits for one more object: a busy machine takes long until the lists of many are read.
const WAITS: u32 = 10;

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

/// The requests after the first `from` ones.
fn requests(proxy: &FaultProxy, from: usize, plural: &str) -> SingleRequests {
    let all = proxy.requests();
    let new = &all[from..];
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

/// Waits until there are `wanted`, as long as more and more come: a list of many objects takes long
/// on a busy machine.
async fn patiently(what: &str, wanted: usize, count: impl Fn() -> usize) -> TestResult {
    let mut known = 0;
    let mut waits = 0;
    while known < wanted {
        let more = eventually(what, async || {
            let now = count();
            (now > known).then_some(now)
        });
        match more.await {
            Ok(now) => (known, waits) = (now, 0),
            Err(_) if waits < WAITS => waits += 1,
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Creates the owners with a ConfigMap each.
async fn create(owners: &Objects, wanted: usize, namespace: &str) -> TestResult {
    stream::iter(0..wanted)
        .map(|at| {
            let maps = json!({format!("map-{at}"): {"size": "1"}});
            let body = json!({"spec": {"namespace": namespace, "maps": maps}});
            async move { owners.create(&format!("owner-{at}"), body).await.map(drop) }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

async fn delete(maps: &Objects, count: usize) -> TestResult {
    stream::iter(0..count)
        .map(|at| async move { maps.delete(&format!("map-{at}")).await })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// The children that exist.
async fn children(maps: &Objects) -> Result<usize, TestFailure> {
    let params = ListParams::default().labels(&format!("{OPERATOR_LABEL}=fixture"));
    Ok(maps.api().list_metadata(&params).await?.items.len())
}

/// A start over healthy children costs lists and watches only.
async fn start_again(
    fixture: &mut HandlerFixture,
    handled: ResourceHandlers,
    wanted: usize,
) -> Result<FaultProxy, TestFailure> {
    while fixture.next_report_within(Duration::ZERO).await.is_some() {}
    let (proxy, operator) = fixture.start_through_proxy(handled).await?;
    for _ in 0..wanted {
        let limit = DEFAULT_TIMEOUT * WAITS;
        let report = fixture.next_report_within(limit).await;
        let report = report.unwrap_or_default();
        assert!(report.ends_with(": listed"), "{report}");
    }
    operator.stop().await?;
    let more = fixture.next_report_within(Duration::ZERO).await;
    assert_eq!(more, None, "each owner is handled once");
    Ok(proxy)
}

#[expect(clippy::print_stdout, reason = "figures for the documentation")]
async fn check(fixture: &mut HandlerFixture, spec: ResourceSpec, owners: &Objects) -> TestResult {
    let wanted = self::owners()?;
    let maps = config_maps(fixture).await?;
    create(owners, wanted, fixture.sandbox.namespace()).await?;
    let resource = |fixture: &HandlerFixture| Resource::new(spec, &fixture.scripts);
    let handled = handlers(resource(fixture));
    let (proxy, operator) = fixture.start_through_proxy(handled).await?;
    // What the operator has sent is known without lists of all objects.
    let sent = |from: usize| requests(&proxy, from, spec.plural);
    let child_writes = || sent(0).child_writes;
    patiently("more children are made", wanted, child_writes).await?;
    let first = sent(0);
    println!("{wanted} {}: {first:?}", spec.plural);
    // Each child is applied once, and shows that.
    assert_eq!((first.child_reads, first.child_writes), (0, wanted));
    assert_eq!(children(&maps).await?, wanted);

    // Children that are deleted come back, for as many requests.
    let deleted = wanted / 5;
    let from = proxy.requests().len();
    delete(&maps, deleted).await?;
    let child_writes = || sent(from).child_writes;
    patiently("more children are made anew", deleted, child_writes).await?;
    operator.stop().await?;
    let repaired = sent(from);
    println!("{deleted} children deleted: {repaired:?}");
    assert_eq!((repaired.child_reads, repaired.child_writes), (0, deleted));
    // No owner is read or written, neither at the start nor later.
    assert_eq!((sent(0).owner_reads, sent(0).owner_writes), (0, 0));
    assert_eq!(children(&maps).await?, wanted);

    let handled = handlers(resource(fixture));
    let proxy = start_again(fixture, handled, wanted).await?;
    let again = requests(&proxy, 0, spec.plural);
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
