//! Kinds that are defined, deleted, defined again, and changed while the operator runs.

use kopf_runtime::{EventHandler, Namespaces, Operator, Resource, ResourceSpec};
use kopf_tests::audit::AuditedRequest;
use kopf_tests::{TestFailure, TestResult, User, try_eventually};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts, StartedOperator};

async fn watch_gizmos(
    fixture: &HandlerFixture,
    identity: User,
) -> Result<StartedOperator, TestFailure> {
    let spec = ResourceSpec {
        kind: "Gizmo",
        plural: "gizmos",
        ..fixture.spec()
    };
    let resource = Resource::<Value, HandlerScripts>::new(spec, &fixture.scripts)
        .event(EventHandler::new("spy"), |scripts, cx| {
            Box::pin(async move {
                scripts.report_event(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build();
    let own = fixture.sandbox.namespace().to_owned();
    let operator = Operator::new("fixture")
        .resource(resource)
        .namespaces(Namespaces::Only(vec![own]));
    fixture.start_as(identity, operator).await
}

/// The number of list requests of the kind with such a status code.
fn lists(requests: &[AuditedRequest], code: impl Fn(u16) -> bool) -> usize {
    let lists = requests.iter().filter(|it| it.verb == "list");
    let lists = lists.filter(|it| it.uri.contains("gizmos?"));
    lists.filter(|it| code(it.code)).count()
}

async fn definitions(fixture: &HandlerFixture) -> Result<Api<DynamicObject>, TestFailure> {
    let definitions = fixture
        .sandbox
        .objects("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        .await?;
    Ok(definitions.api().clone())
}

#[tokio::test]
async fn a_kind_is_watched_as_soon_as_it_is_defined_and_until_it_is_undefined() -> TestResult {
    let mut fixture = HandlerFixture::new("comes").await?;
    let identity = fixture.new_user();
    let operator = watch_gizmos(&fixture, identity).await?;
    try_eventually("the operator waits for the definition", async || {
        let requests = fixture.sandbox.requests_of(&operator.user).await?;
        let waits = |it: &AuditedRequest| {
            it.verb == "watch" && it.uri.contains("customresourcedefinitions")
        };
        Ok(requests.iter().any(waits).then_some(()))
    })
    .await?;
    let gizmos = fixture.sandbox.define("Gizmo").await?;
    gizmos.create("one", json!({"spec": {"size": 1}})).await?;
    let seen = fixture.next_report().await;
    assert!(["one LISTED 1", "one ADDED 1"].contains(&&*seen), "{seen}");
    let requests = fixture.sandbox.requests_of(&operator.user).await?;
    let lists = lists(&requests, |_| true);
    assert!(
        lists < 12,
        "a waiting operator does not poll: {lists} lists"
    );

    let definitions = definitions(&fixture).await?;
    let name = format!("gizmos.{}", fixture.sandbox.group());
    definitions.delete(&name, &DeleteParams::default()).await?;
    assert_eq!(fixture.next_report().await, "one DELETED 1");
    try_eventually("the definition is gone", async || {
        Ok(definitions.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    let gizmos = fixture.sandbox.define("Gizmo").await?;
    gizmos.create("two", json!({"spec": {"size": 2}})).await?;
    let seen = fixture.next_report().await;
    assert!(["two LISTED 2", "two ADDED 2"].contains(&&*seen), "{seen}");
    operator.stop().await
}

#[tokio::test]
async fn objects_of_a_version_that_is_no_longer_served_are_not_deleted() -> TestResult {
    let mut fixture = HandlerFixture::new("version").await?;
    let identity = fixture.new_user();
    let gizmos = fixture.sandbox.define("Gizmo").await?;
    gizmos.create("one", json!({"spec": {"size": 1}})).await?;
    let operator = watch_gizmos(&fixture, identity).await?;
    assert_eq!(fixture.next_report().await, "one LISTED 1");

    let definitions = definitions(&fixture).await?;
    let name = format!("gizmos.{}", fixture.sandbox.group());
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
    try_eventually("the operator has got a 404", async || {
        let requests = fixture.sandbox.requests_of(&operator.user).await?;
        Ok((lists(&requests, |code| code == 404) > 0).then_some(()))
    })
    .await?;
    set(json!([
        version("v1", true, false),
        version("v2", true, true)
    ]))
    .await?;
    // The object was never deleted.
    assert_eq!(fixture.next_report().await, "one LISTED 1");
    operator.stop().await
}

#[tokio::test]
async fn kinds_are_discovered_without_permission_to_watch_definitions() -> TestResult {
    let mut fixture = HandlerFixture::new("undefined").await?;
    let user = fixture.sandbox.user("undefined");
    fixture
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
    let operator = watch_gizmos(&fixture, user).await?;
    try_eventually("the operator may not watch definitions", async || {
        let requests = fixture.sandbox.requests_of(&operator.user).await?;
        let refused =
            |it: &AuditedRequest| it.code == 403 && it.uri.contains("customresourcedefinitions");
        Ok(requests.into_iter().find(refused))
    })
    .await?;
    let gizmos = fixture.sandbox.define("Gizmo").await?;
    gizmos.create("one", json!({"spec": {"size": 1}})).await?;
    let seen = fixture.next_report().await;
    assert!(["one LISTED 1", "one ADDED 1"].contains(&&*seen), "{seen}");

    let definitions = definitions(&fixture).await?;
    let name = format!("gizmos.{}", fixture.sandbox.group());
    definitions.delete(&name, &DeleteParams::default()).await?;
    assert_eq!(fixture.next_report().await, "one DELETED 1");
    operator.stop().await
}
