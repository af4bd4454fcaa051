//! Children that owner references do not reach: in another namespace, and of the cluster.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kopf_runtime::{
    ChildOf, ChildOptions, HandlerResult, Namespaces, Operator, Pruning, ReconcileContext,
    ResourceSpec, Scope, StatusSubresource,
};
use kopf_tests::{TestFailure, TestResult, eventually};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{keep_maps, kept_maps, reconcile, reported};
use crate::fixture::{HandlerFixture, HandlerScripts};
use crate::indices::CONFIG_MAP;

const CLUSTER_ROLE: ResourceSpec = ResourceSpec {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "ClusterRole",
    plural: "clusterroles",
    scope: Scope::Cluster,
    status: StatusSubresource::Absent,
};

/// The marker of a kind with children of the cluster.
enum ClusterChildren {}

impl ChildOf<ClusterChildren> for ClusterRole {
    const OPTIONS: ChildOptions = ChildOptions::new();
}

/// The marker of a kind whose children stay.
enum StayingChildren {}

impl ChildOf<StayingChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new().pruning(Pruning::Keep);
}

async fn keep_role(
    scripts: &HandlerScripts,
    cx: &mut ReconcileContext<Value, ClusterChildren>,
) -> HandlerResult {
    let mut role = ClusterRole::default();
    role.metadata.name = cx.raw()["spec"]["role"].as_str().map(str::to_owned);
    cx.apply(role).await?;
    scripts.report(format!("kept {}", cx.name()));
    Ok(())
}

/// A namespace beside that of the owners.
struct FarNamespace {
    own: String,
    far: String,
    namespaces: Api<Namespace>,
    /// The children there.
    maps: Api<ConfigMap>,
}

impl FarNamespace {
    async fn create(fixture: &HandlerFixture) -> Result<Self, TestFailure> {
        let own = fixture.sandbox.namespace().to_owned();
        let far = format!("{own}-far");
        let client: Client = fixture.sandbox.client();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let body = json!({"metadata": {"name": far}});
        namespaces
            .create(&PostParams::default(), &serde_json::from_value(body)?)
            .await?;
        let maps = Api::namespaced(client, &far);
        Ok(Self {
            own,
            far,
            namespaces,
            maps,
        })
    }
}

async fn is_gone<T>(api: &Api<T>, name: &str) -> TestResult
where
    T: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    eventually(&format!("{name} is gone"), async || {
        let found = api.get_metadata_opt(name).await.ok()?;
        found.is_none().then_some(())
    })
    .await
}

#[tokio::test]
async fn a_child_in_another_namespace_is_deleted_with_its_owner() -> TestResult {
    let mut fixture = HandlerFixture::new("far").await?;
    let FarNamespace {
        own,
        far,
        namespaces,
        maps,
    } = FarNamespace::create(&fixture).await?;
    let operator = Operator::new("fixture").resource(kept_maps(&fixture, reconcile()));
    let operator = operator.namespaces(Namespaces::Only(vec![own, far.clone()]));
    let user = fixture.new_user();
    let operator = fixture.start_as(user, operator).await?;
    let body = json!({"spec": {"namespace": far, "maps": {"a": {"size": "1"}}}});
    let owner = fixture.objects.create("one", body).await?;
    // The first call finds no finalizer, and the second one is complete.
    reported(&mut fixture, "one: created").await;
    let child = maps.get("a").await?;
    assert!(child.owner_references().is_empty());
    assert_eq!(
        child.labels().get(kopf_runtime::OWNER_LABEL),
        owner.uid().as_ref()
    );
    let held = fixture.objects.get("one").await?;
    assert_eq!(held.finalizers().len(), 1);

    fixture.objects.delete("one").await?;
    is_gone(&maps, "a").await?;
    fixture.objects.wait_gone("one").await?;
    namespaces.delete(&far, &Default::default()).await?;
    operator.stop().await
}

#[tokio::test]
async fn an_owner_that_stops_matching_is_released_at_its_deletion() -> TestResult {
    let mut fixture = HandlerFixture::new("far-unmatched").await?;
    let FarNamespace {
        own,
        far,
        namespaces,
        maps,
    } = FarNamespace::create(&fixture).await?;
    let handler = reconcile().label("wanted", kopf_runtime::TextTest::Present);
    let operator = Operator::new("fixture").resource(kept_maps(&fixture, handler));
    let operator = operator.namespaces(Namespaces::Only(vec![own, far.clone()]));
    let user = fixture.new_user();
    let operator = fixture.start_as(user, operator).await?;
    let body = json!({
        "metadata": {"labels": {"wanted": "yes"}},
        "spec": {"namespace": far, "maps": {"a": {"size": "1"}}},
    });
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;

    let unlabelled = json!({"metadata": {"labels": {"wanted": null}}});
    let owner = fixture.objects.merge("one", unlabelled).await?;
    assert_eq!(owner.finalizers().len(), 1);
    assert_eq!(maps.get("a").await?.name_any(), "a");
    fixture.objects.delete("one").await?;
    is_gone(&maps, "a").await?;
    fixture.objects.wait_gone("one").await?;
    namespaces.delete(&far, &Default::default()).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_child_that_is_not_pruned_stays_in_another_namespace_without_its_owner() -> TestResult {
    let mut fixture = HandlerFixture::new("far-stays").await?;
    let FarNamespace {
        own,
        far,
        namespaces,
        maps,
    } = FarNamespace::create(&fixture).await?;
    let handlers = fixture
        .resource()
        .child::<StayingChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<StayingChildren>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .build();
    let operator = Operator::new("fixture").resource(handlers);
    let operator = operator.namespaces(Namespaces::Only(vec![own, far.clone()]));
    let user = fixture.new_user();
    let operator = fixture.start_as(user.clone(), operator).await?;
    let body = json!({"spec": {"namespace": far, "maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let owner = fixture.objects.get("one").await?;
    assert!(owner.finalizers().is_empty(), "nothing is to be deleted");
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;
    operator.stop().await?;
    assert_eq!(maps.get("a").await?.name_any(), "a");
    let requests = fixture.sandbox.requests_of(&user).await?;
    let deletes: Vec<_> = requests.iter().filter(|it| it.verb == "delete").collect();
    assert!(deletes.is_empty(), "the role has no such verb: {deletes:?}");
    namespaces.delete(&far, &Default::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_child_of_the_cluster_is_deleted_with_its_owner_even_after_a_restart() -> TestResult {
    let mut fixture = HandlerFixture::new("cluster-child").await?;
    let name = format!("{}-role", fixture.sandbox.namespace());
    let handlers = |fixture: &HandlerFixture| {
        fixture
            .resource()
            .child::<ClusterChildren, ClusterRole>(CLUSTER_ROLE)
            .reconcile::<ClusterChildren>(reconcile(), |scripts, cx| {
                Box::pin(keep_role(scripts, cx))
            })
            .build()
    };
    let operator = fixture.start(handlers(&fixture)).await?;
    fixture
        .objects
        .create("one", json!({"spec": {"role": name}}))
        .await?;
    reported(&mut fixture, "kept one").await;
    let roles: Api<ClusterRole> = Api::all(fixture.sandbox.client());
    assert_eq!(roles.get(&name).await?.name_any(), name);
    operator.stop().await?;

    fixture
        .objects
        .api()
        .delete("one", &Default::default())
        .await?;
    assert_eq!(
        roles.get(&name).await?.name_any(),
        name,
        "its owner is held"
    );
    let operator = fixture.start(handlers(&fixture)).await?;
    is_gone(&roles, &name).await?;
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_namespace_that_is_not_watched_is_refused() -> TestResult {
    let mut fixture = HandlerFixture::new("unwatched").await?;
    let operator = fixture.start(kept_maps(&fixture, reconcile())).await?;
    let body = json!({"spec": {"namespace": "default", "maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    let report = fixture.next_report().await;
    assert!(
        report.contains("does not watch the configmaps of the namespace default"),
        "{report}"
    );
    operator.stop().await
}
