//! Children: adopted by the handled object, and deleted with it.

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::hierarchy::{Adoption, Naming};
use kopf_runtime::{ChangeContext, ChangeHandler, HandlerResult, On, ResourceHandlers};
use kopf_tests::{FaultProxy, TestResult};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts};

#[tokio::test]
async fn an_adopted_child_is_deleted_with_its_owner() -> TestResult {
    let mut fixture = HandlerFixture::new("children").await?;
    fixture.script_async("create_fn", |cx| {
        let mut child = ConfigMap::default();
        let strict = Adoption {
            naming: Naming::Strict,
            ..Adoption::default()
        };
        let adopted = cx.adopt_as(&mut child, &strict);
        let client = cx.client().clone();
        async move {
            adopted?;
            let namespace = child.metadata.namespace.clone().unwrap_or_default();
            let children: Api<ConfigMap> = Api::namespaced(client, &namespace);
            children.create(&Default::default(), &child).await?;
            Ok(())
        }
    });
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    let body = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"size": 1}});
    fixture.objects.create("one", body).await?;
    fixture.wait_until_handled("one", 1).await?;
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let child = children.get("one").await?;
    assert_eq!(
        child.metadata.labels,
        Some([("tier".to_owned(), "gold".to_owned())].into())
    );
    fixture.objects.delete("one").await?;
    children.wait_gone("one").await?;
    operator.stop().await
}

/// Applies one ConfigMap with the size of the object, and a note while the size is 1.
async fn keep_child(scripts: &HandlerScripts, cx: &mut ChangeContext<Value>) -> HandlerResult {
    let size = &cx.object()["spec"]["size"];
    let mut child = ConfigMap::default();
    let data = child.data.get_or_insert_default();
    data.insert("size".to_owned(), size.to_string());
    if size == 1 {
        data.insert("note".to_owned(), "first".to_owned());
    }
    let applied = cx.apply(child).await;
    scripts.report(match &applied {
        Ok(child) => format!(
            "applied {}",
            child.metadata.name.as_deref().unwrap_or_default()
        ),
        Err(error) => error.to_string(),
    });
    applied.map(drop)
}

#[tokio::test]
async fn a_child_is_applied_with_owner_name_namespace_and_labels() -> TestResult {
    let mut fixture = HandlerFixture::new("apply").await?;
    let handlers = fixture
        .resource()
        .change(
            ChangeHandler::new("keep_child", On::create().or(On::update())),
            |scripts, cx| Box::pin(keep_child(scripts, cx)),
        )
        .build();
    let operator = fixture.start(handlers).await?;
    let body = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"size": 1}});
    let owner = fixture.objects.create("one", body).await?;
    assert_eq!(fixture.next_report().await, "applied one");
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let child = children.get("one").await?;
    assert_eq!(child.data["data"], json!({"size": "1", "note": "first"}));
    assert_eq!(
        child.metadata.labels.as_ref().map(|it| it["tier"].as_str()),
        Some("gold")
    );
    let owners = child.metadata.owner_references.unwrap_or_default();
    assert_eq!(owners[0].uid, owner.metadata.uid.unwrap_or_default());
    let managers = child.metadata.managed_fields.unwrap_or_default();
    assert_eq!(managers[0].manager.as_deref(), Some("fixture"));

    children
        .merge("one", json!({"data": {"theirs": "stays"}}))
        .await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(fixture.next_report().await, "applied one");
    let child = children.get("one").await?;
    assert_eq!(child.data["data"], json!({"size": "2", "theirs": "stays"}));
    operator.stop().await
}

#[tokio::test]
async fn an_object_without_this_owner_is_not_taken_over() -> TestResult {
    let mut fixture = HandlerFixture::new("apply-foreign").await?;
    let handler = ChangeHandler::new("keep_child", On::create());
    let handlers = fixture
        .resource()
        .change(handler.retries(1), |scripts, cx| {
            Box::pin(keep_child(scripts, cx))
        })
        .build();
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let theirs = children
        .create("one", json!({"data": {"key": "theirs"}}))
        .await?;
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    let report = fixture.next_report().await;
    assert_eq!(
        report,
        "the ConfigMap one exists, and this object does not own it"
    );
    let now = children.get("one").await?;
    assert_eq!(
        now.metadata.resource_version,
        theirs.metadata.resource_version
    );
    operator.stop().await
}

/// The requests about children that an operator has sent.
fn child_requests(proxy: &FaultProxy) -> Vec<Method> {
    let requests = proxy.requests().into_iter();
    let requests = requests.filter(|request| request.uri.contains("/configmaps/"));
    requests.map(|request| request.method).collect()
}

#[tokio::test]
async fn a_child_that_was_applied_before_costs_one_request() -> TestResult {
    let mut fixture = HandlerFixture::new("apply-requests").await?;
    let handlers = kept_child(&fixture);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "applied one");
    assert_eq!(child_requests(&proxy), [Method::GET, Method::PATCH]);
    let resize = async |fixture: &mut HandlerFixture, size: u32| {
        let patch = json!({"spec": {"size": size}});
        fixture.objects.merge("one", patch).await?;
        assert_eq!(fixture.next_report().await, "applied one");
        TestResult::Ok(())
    };
    resize(&mut fixture, 2).await?;
    let expected = [Method::GET, Method::PATCH, Method::PATCH];
    assert_eq!(child_requests(&proxy), expected);

    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    children.delete("one").await?;
    children.wait_gone("one").await?;
    resize(&mut fixture, 3).await?;
    assert_eq!(children.get("one").await?.data["data"]["size"], "3");
    let again = [Method::PATCH, Method::GET, Method::PATCH];
    assert_eq!(child_requests(&proxy)[3..], again);
    operator.stop().await
}

#[tokio::test]
async fn another_object_in_the_place_of_a_child_is_not_taken_over() -> TestResult {
    let mut fixture = HandlerFixture::new("apply-replaced").await?;
    let operator = fixture.start(kept_child(&fixture)).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "applied one");
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    children.delete("one").await?;
    children.wait_gone("one").await?;
    children
        .create("one", json!({"data": {"key": "theirs"}}))
        .await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(
        fixture.next_report().await,
        "the ConfigMap one exists, and this object does not own it"
    );
    assert_eq!(
        children.get("one").await?.data["data"],
        json!({"key": "theirs"})
    );
    operator.stop().await
}

#[tokio::test]
async fn updated_fields_are_taken_back_and_those_of_another_applier_are_not() -> TestResult {
    let mut fixture = HandlerFixture::new("apply-conflict").await?;
    let operator = fixture.start(kept_child(&fixture)).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "applied one");
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    children
        .merge("one", json!({"data": {"size": "updated"}}))
        .await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(fixture.next_report().await, "applied one");
    assert_eq!(children.get("one").await?.data["data"]["size"], "2");

    let theirs = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one"},
        "data": {"size": "theirs"},
    });
    let parameters = PatchParams::apply("another").force();
    let theirs = Patch::Apply(&theirs);
    children.api().patch("one", &parameters, &theirs).await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 3}}))
        .await?;
    assert_eq!(
        fixture.next_report().await,
        "another client applies fields of the ConfigMap one, too: \
         .data.size (conflict with \"another\")"
    );
    assert_eq!(children.get("one").await?.data["data"]["size"], "theirs");
    operator.stop().await
}

/// A handler that keeps the child up to date.
fn kept_child(fixture: &HandlerFixture) -> ResourceHandlers {
    let handler = ChangeHandler::new("keep_child", On::create().or(On::update()));
    fixture
        .resource()
        .change(handler.retries(1), |scripts, cx| {
            Box::pin(keep_child(scripts, cx))
        })
        .build()
}
