//! Children: adopted by the handled object, and deleted with it.

use std::sync::Arc;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::hierarchy::{Adoption, Naming};
use kopf_runtime::{
    ChangeContext, ChangeHandler, EventContext, EventHandler, HandlerResult, On, Operator,
    Resource, ResourceHandlers,
};
use kopf_tests::{Fault, FaultProxy, RequestMatch, TestResult};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts};
use crate::indices::CONFIG_MAP;

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
async fn an_object_that_another_client_makes_meanwhile_is_not_taken_over() -> TestResult {
    let mut fixture = HandlerFixture::new("apply-made-meanwhile").await?;
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let theirs = children
        .create("one", json!({"data": {"size": "theirs"}}))
        .await?;
    let handlers = kept_child(&fixture);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    // As if it had been made after the operator asked for it.
    let question = RequestMatch::any()
        .method(Method::GET)
        .path("/configmaps/one");
    proxy.once(question, Fault::Answer(StatusCode::NOT_FOUND));
    fixture.create("one", 1).await?;
    assert_eq!(
        fixture.next_report().await,
        "the ConfigMap one exists, and this object does not own it"
    );
    let now = children.get("one").await?;
    assert_eq!(
        now.metadata.resource_version,
        theirs.metadata.resource_version
    );
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

/// Writes the size that a child has into the status of its owner.
async fn tell_owner(scripts: &HandlerScripts, cx: &mut EventContext<ConfigMap>) -> HandlerResult {
    let owners = cx.object().metadata.owner_references.iter().flatten();
    for owner in owners {
        let (group, version) = owner.api_version.split_once('/').unwrap_or_default();
        let kind = GroupVersionKind::gvk(group, version, &owner.kind);
        let namespace = cx.namespace().unwrap_or_default();
        let resource = ApiResource::from_gvk(&kind);
        let client = cx.client().clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let size = cx.object().data.as_ref().and_then(|data| data.get("size"));
        let patch = Patch::Merge(json!({"status": {"child": size}}));
        let params = PatchParams::default();
        api.patch_status(&owner.name, &params, &patch).await?;
        scripts.report(format!("told {} {size:?}", owner.name));
    }
    Ok(())
}

/// An operator whose owners make a child each, which tells them its size.
fn telling_children(fixture: &HandlerFixture, reaction: ChangeHandler) -> Operator {
    fixture.script_async("keep_child", |cx| {
        let size = cx.object()["spec"]["size"].to_string();
        let mut child = ConfigMap::default();
        let data = child.data.get_or_insert_default();
        data.insert("size".to_owned(), size);
        let strict = Adoption {
            naming: Naming::Strict,
            ..Adoption::default()
        };
        let adopted = cx.adopt_as(&mut child, &strict);
        let maps = cx.api::<ConfigMap>();
        async move {
            adopted?;
            maps.create(&Default::default(), &child).await?;
            Ok(())
        }
    });
    let children = Resource::<ConfigMap, HandlerScripts>::new(CONFIG_MAP, &fixture.scripts)
        .event(EventHandler::new("tell_owner"), |scripts, cx| {
            Box::pin(tell_owner(scripts, cx))
        })
        .build();
    let owners = fixture.handlers([ChangeHandler::new("keep_child", On::create()), reaction]);
    Operator::new("hierarchy")
        .resource(owners)
        .resource(children)
}

#[tokio::test]
async fn the_handler_of_a_child_writes_the_status_of_its_owner() -> TestResult {
    let mut fixture = HandlerFixture::new("told-owner").await?;
    let reaction = ChangeHandler::new("changed", On::update());
    let operator = telling_children(&fixture, reaction);
    let operator = fixture.start_operator(operator).await?;
    fixture.create("one", 3).await?;
    let told = async |size: &str| {
        fixture
            .objects
            .wait_until("one", "its child has told it", |it| {
                it.data["status"]["child"] == size
            })
            .await
    };
    told("3").await?;
    fixture.wait_until_handled("one", 3).await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    maps.merge("one", json!({"data": {"size": "4"}})).await?;
    told("4").await?;
    // The status is no change of the owner, so the two do not call each other without an end.
    operator.stop().await?;
    let calls = fixture.calls_so_far().into_iter().map(|it| it.handler);
    assert_eq!(calls.collect::<Vec<_>>(), ["keep_child"]);
    Ok(())
}

#[tokio::test]
async fn an_owner_reacts_to_what_its_children_write_into_its_status() -> TestResult {
    let mut fixture = HandlerFixture::new("reacting-owner").await?;
    let scripts = Arc::clone(&fixture.scripts);
    fixture.script("react/status.child", move |cx| {
        scripts.report(format!("react {}", cx.raw()["status"]["child"]));
        Ok(())
    });
    let reaction = ChangeHandler::new("react", On::update()).field("status.child");
    let operator = telling_children(&fixture, reaction);
    let operator = fixture.start_operator(operator).await?;
    fixture.create("one", 3).await?;
    fixture.wait_until_handled("one", 3).await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    maps.merge("one", json!({"data": {"size": "4"}})).await?;
    while fixture.next_report().await != "react \"4\"" {}
    operator.stop().await
}
