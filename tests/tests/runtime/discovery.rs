//! Kinds that come, go, come again, and change while the operator runs.

use kopf_runtime::{EventHandler, Namespaces, Operator, Resource, ResourceSpec};
use kopf_tests::audit::AuditedRequest;
use kopf_tests::{TestFailure, TestResult, User, try_eventually};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::bench::{Bench, Running, Stage};

async fn watch_gizmos(bench: &Bench, identity: User) -> Result<Running, TestFailure> {
    let spec = ResourceSpec {
        kind: "Gizmo",
        plural: "gizmos",
        ..bench.spec()
    };
    let resource = Resource::<Value, Stage>::new(spec, &bench.stage)
        .event(EventHandler::new("spy"), |stage, cx| {
            Box::pin(async move {
                stage.see(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build();
    let own = bench.sandbox.namespace().to_owned();
    let operator = Operator::new("bench")
        .resource(resource)
        .namespaces(Namespaces::Only(vec![own]));
    bench.start_as(identity, operator).await
}

/// How many lists of the kind were answered with such a code.
fn lists(requests: &[AuditedRequest], code: impl Fn(u16) -> bool) -> usize {
    let lists = requests.iter().filter(|it| it.verb == "list");
    let lists = lists.filter(|it| it.uri.contains("gizmos?"));
    lists.filter(|it| code(it.code)).count()
}

async fn definitions(bench: &Bench) -> Result<Api<DynamicObject>, TestFailure> {
    let definitions = bench
        .sandbox
        .objects("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        .await?;
    Ok(definitions.api().clone())
}

#[tokio::test]
async fn a_kind_is_noticed_at_once_when_it_comes_and_when_it_goes() -> TestResult {
    let mut bench = Bench::new("comes").await?;
    let identity = bench.identity();
    let operator = watch_gizmos(&bench, identity).await?;
    try_eventually("the operator waits for the definition", async || {
        let requests = bench.sandbox.requests_of(&operator.identity).await?;
        let waits = |it: &AuditedRequest| {
            it.verb == "watch" && it.uri.contains("customresourcedefinitions")
        };
        Ok(requests.iter().any(waits).then_some(()))
    })
    .await?;
    let gizmos = bench.sandbox.define("Gizmo").await?;
    gizmos.create("one", json!({"spec": {"size": 1}})).await?;
    let seen = bench.seen().await;
    assert!(["one LISTED 1", "one ADDED 1"].contains(&&*seen), "{seen}");
    let requests = bench.sandbox.requests_of(&operator.identity).await?;
    let lists = lists(&requests, |_| true);
    assert!(
        lists < 12,
        "whoever waits does not ask again and again: {lists} lists"
    );

    let definitions = definitions(&bench).await?;
    let name = format!("gizmos.{}", bench.sandbox.group());
    definitions.delete(&name, &DeleteParams::default()).await?;
    assert_eq!(bench.seen().await, "one DELETED 1");
    try_eventually("the definition is gone", async || {
        Ok(definitions.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    let gizmos = bench.sandbox.define("Gizmo").await?;
    gizmos.create("two", json!({"spec": {"size": 2}})).await?;
    let seen = bench.seen().await;
    assert!(["two LISTED 2", "two ADDED 2"].contains(&&*seen), "{seen}");
    operator.stop().await
}

#[tokio::test]
async fn a_version_that_is_not_served_any_more_deletes_nothing() -> TestResult {
    let mut bench = Bench::new("version").await?;
    let identity = bench.identity();
    let gizmos = bench.sandbox.define("Gizmo").await?;
    gizmos.create("one", json!({"spec": {"size": 1}})).await?;
    let operator = watch_gizmos(&bench, identity).await?;
    assert_eq!(bench.seen().await, "one LISTED 1");

    let definitions = definitions(&bench).await?;
    let name = format!("gizmos.{}", bench.sandbox.group());
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &str, served: bool, storage: bool| {
        json!({
            "name": name, "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": any}, "subresources": {"status": {}},
        })
    };
    let set = async |versions: Value| -> TestResult {
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        definitions
            .patch(&name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    };
    set(json!([
        version("v1", false, false),
        version("v2", true, true)
    ]))
    .await?;
    try_eventually("the operator has asked in vain", async || {
        let requests = bench.sandbox.requests_of(&operator.identity).await?;
        Ok((lists(&requests, |code| code == 404) > 0).then_some(()))
    })
    .await?;
    set(json!([
        version("v1", true, false),
        version("v2", true, true)
    ]))
    .await?;
    // The object was never gone.
    assert_eq!(bench.seen().await, "one LISTED 1");
    operator.stop().await
}

#[tokio::test]
async fn without_the_permission_to_see_definitions_kinds_are_noticed_too() -> TestResult {
    let mut bench = Bench::new("undefined").await?;
    let user = bench.sandbox.user("undefined");
    bench
        .sandbox
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: undefined}}
rules: [{{apiGroups: [$GROUP], resources: [gizmos], verbs: [list, watch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: undefined}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: undefined}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {}}}]
",
            user.name()
        ))
        .await?;
    let operator = watch_gizmos(&bench, user).await?;
    try_eventually("the operator may not see definitions", async || {
        let requests = bench.sandbox.requests_of(&operator.identity).await?;
        let refused =
            |it: &AuditedRequest| it.code == 403 && it.uri.contains("customresourcedefinitions");
        Ok(requests.into_iter().find(refused))
    })
    .await?;
    let gizmos = bench.sandbox.define("Gizmo").await?;
    gizmos.create("one", json!({"spec": {"size": 1}})).await?;
    let seen = bench.seen().await;
    assert!(["one LISTED 1", "one ADDED 1"].contains(&&*seen), "{seen}");

    let definitions = definitions(&bench).await?;
    let name = format!("gizmos.{}", bench.sandbox.group());
    definitions.delete(&name, &DeleteParams::default()).await?;
    assert_eq!(bench.seen().await, "one DELETED 1");
    operator.stop().await
}
