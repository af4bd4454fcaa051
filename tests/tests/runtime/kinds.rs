//! Special kinds: built-in, sensitive, cluster-scoped, without a status subresource.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::Role;
use kopf_runtime::{
    ChangeContext, ChangeHandler, EventHandler, FieldHandler, HandlerResult, Old, On, Reason,
    Resource, ResourceSpec, Scope, StatusSubresource, ValueTest,
};
use kopf_tests::{TestResult, try_eventually};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts, LAST_HANDLED};

#[tokio::test]
async fn secrets_are_never_copied_and_their_old_values_are_unknown() -> TestResult {
    async fn changed(scripts: &HandlerScripts, cx: &mut ChangeContext<Secret>) -> HandlerResult {
        if cx.reason() == Reason::Update {
            assert_eq!(cx.old_raw(), Old::Unknown);
            assert!(!cx.diff().is_empty());
        }
        scripts.report_call(cx)
    }
    let mut fixture = HandlerFixture::new("secret").await?;
    let spec = ResourceSpec {
        group: "",
        version: "v1",
        kind: "Secret",
        plural: "secrets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Absent,
    };
    let resource = Resource::<Secret, HandlerScripts>::new(spec, &fixture.scripts)
        .change(
            ChangeHandler::new("changed", On::create().or(On::update())),
            |scripts, cx| Box::pin(changed(scripts, cx)),
        )
        .build();
    let secrets = fixture.sandbox.objects("v1", "Secret").await?;
    let body = json!({"stringData": {"password": "correct horse"}});
    secrets.create("listed", body.clone()).await?;
    let operator = fixture.start(resource).await?;
    assert_eq!(fixture.next_call().await.object, "listed");
    let handled = secrets
        .wait_until("listed", "it is handled", |it| !it.annotations().is_empty())
        .await?;
    let encoded = handled.data["data"]["password"].as_str().unwrap_or("none");
    let mut annotations = handled.annotations().values();
    assert!(
        !annotations.any(|text| text.contains(encoded)),
        "{handled:?}"
    );
    let edit = json!({"stringData": {"password": "battery staple"}});
    secrets.merge("listed", edit).await?;
    assert_eq!(fixture.next_call().await.reason, Reason::Update);
    operator.stop().await
}

#[tokio::test]
async fn cluster_scoped_kinds_are_watched_with_any_namespace_setting() -> TestResult {
    let mut fixture = HandlerFixture::new("cluster-wide").await?;
    let spec = ResourceSpec {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        scope: Scope::Cluster,
        status: StatusSubresource::Present,
    };
    let own = fixture.sandbox.namespace().to_owned();
    let handler = EventHandler::new("spy").value("metadata.name", ValueTest::Equals(json!(own)));
    let resource = Resource::<Namespace, HandlerScripts>::new(spec, &fixture.scripts)
        .event(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report_event(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    assert_eq!(fixture.next_report().await, format!("{own} LISTED null"));
    operator.stop().await
}

#[tokio::test]
async fn without_a_status_subresource_one_patch_has_result_and_progress() -> TestResult {
    let mut fixture = HandlerFixture::new("no-status").await?;
    fixture
        .sandbox
        .apply(
            "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
",
        )
        .await?;
    let spec = ResourceSpec {
        kind: "Gadget",
        plural: "gadgets",
        status: StatusSubresource::Absent,
        ..fixture.spec()
    };
    let resource = Resource::<Value, HandlerScripts>::new(spec, &Arc::clone(&fixture.scripts))
        .change(ChangeHandler::new("create_fn", On::create()), |_, cx| {
            Box::pin(async move {
                cx.set_result(&"made")?;
                Ok(())
            })
        })
        .field::<String>(FieldHandler::new("phase", "status.phase"), |scripts, cx| {
            Box::pin(async move { scripts.report_call(cx) })
        })
        .build();
    let operator = fixture.start(resource).await?;
    let api_version = format!("{}/v1", fixture.sandbox.group());
    let gadgets = fixture.sandbox.objects(&api_version, "Gadget").await?;
    gadgets.create("one", json!({"spec": {}})).await?;
    let one = gadgets
        .wait_until("one", "it is handled", |it| {
            it.annotations().contains_key(LAST_HANDLED)
        })
        .await?;
    assert_eq!(one.data["status"], json!({"create_fn": "made"}));
    let requests = fixture.sandbox.requests_of(&operator.user).await?;
    let writes = requests.iter().filter(|request| {
        request.verb == "patch" && request.resource.as_deref() == Some("gadgets")
    });
    assert_eq!(writes.count(), 1, "{requests:#?}");

    gadgets
        .merge("one", json!({"status": {"phase": "Ready"}}))
        .await?;
    let call = fixture.next_call().await;
    assert_eq!(call.handler, "phase/status.phase");
    operator.stop().await
}

#[tokio::test]
async fn objects_with_names_that_a_url_cannot_have_are_handled() -> TestResult {
    async fn changed(scripts: &HandlerScripts, cx: &mut ChangeContext<Value>) -> HandlerResult {
        scripts.report_call(cx)
    }
    let mut fixture = HandlerFixture::new("odd-names").await?;
    let spec = ResourceSpec {
        group: "rbac.authorization.k8s.io",
        version: "v1",
        kind: "Role",
        plural: "roles",
        scope: Scope::Namespaced,
        status: StatusSubresource::Absent,
    };
    let resource = Resource::<Value, HandlerScripts>::new(spec, &fixture.scripts)
        .change(
            ChangeHandler::new("changed", On::create().or(On::delete())),
            |scripts, cx| Box::pin(changed(scripts, cx)),
        )
        .build();
    let operator = fixture.start(resource).await?;
    let roles: Api<Role> = Api::namespaced(fixture.sandbox.client(), fixture.sandbox.namespace());
    for name in ["victim", "victim?x=y", "victim#z", "system:a + ü"] {
        let role = json!({"metadata": {"name": name}, "rules": []});
        let role = serde_json::from_value(role)?;
        roles.create(&PostParams::default(), &role).await?;
        assert_eq!(fixture.next_call().await.object, name);
        try_eventually("the object is handled", async || {
            let all = roles.list(&Default::default()).await?;
            let handled = all.iter().find(|it| it.name_any() == name);
            Ok(handled.and_then(|it| it.annotations().get(LAST_HANDLED).cloned()))
        })
        .await?;
    }
    operator.stop().await
}
