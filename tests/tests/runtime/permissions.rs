//! Operators of some namespaces, with exactly the roles that the generator makes for them.

use std::time::Duration;

use kopf_runtime::{
    ChangeHandler, EventHandler, HandlerError, Namespaces, On, Operator, TimerHandler,
};
use kopf_tests::peering::define;
use kopf_tests::permission::grant;
use kopf_tests::{PeeringObject, Sandbox, TestResult, eventually, peering};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use serde_json::json;

use crate::fixture::HandlerFixture;
use crate::generated_rbac::GeneratedManifests;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

#[tokio::test]
async fn roles_in_the_served_namespaces_suffice_for_all_requests() -> TestResult {
    let fixture = HandlerFixture::new("roles").await?;
    let (other, operator_sandbox) = (Sandbox::open("others").await?, Sandbox::open("own").await?);
    let namespaces = [fixture.sandbox.namespace(), other.namespace()].map(str::to_owned);
    let manifest = format!(
        "
apiVersion: kopf-gen.dev/v1
operator:
  name: {}
  namespaces: [{}]
resources:
  - crd: widgets.yaml
    handlers:
      - {{on: create, fn: make}}
      - {{on: delete, fn: release}}
      - {{on: event, fn: seen}}
      - {{timer: tick, interval: 1s}}
",
        operator_sandbox.namespace(),
        namespaces.join(", ")
    );
    let definition = DEFINITION.replace("$GROUP", fixture.sandbox.group());
    let generated = GeneratedManifests::new(manifest, &definition)?;
    let cluster_wide = generated.permissions().into_iter();
    let cluster_wide = cluster_wide.filter(|it| it.namespace.is_none());
    assert!(
        cluster_wide
            .into_iter()
            .all(|it| it.resource == "customresourcedefinitions"),
        "namespaced resources are granted in their namespaces"
    );
    define(&operator_sandbox, peering::GROUP).await?;
    let peerings = [
        PeeringObject::create(&fixture.sandbox, "default").await?,
        PeeringObject::create(&other, "default").await?,
    ];
    let account = GeneratedManifests::account(operator_sandbox.namespace());
    let all: Vec<_> = generated
        .permissions()
        .into_iter()
        .map(|it| (it, true))
        .collect();
    grant(&operator_sandbox, &account, &generated.rbac, &all).await?;

    fixture.script("make", |cx| match cx.retry() {
        0 => Err(HandlerError::temporary_after(
            Duration::from_millis(100),
            "not yet",
        )),
        _ => {
            cx.patch().status(json!({"made": true}));
            Ok(())
        }
    });
    let resource = fixture
        .resource()
        .change(ChangeHandler::new("make", On::create()), |scripts, cx| {
            Box::pin(scripts.run(cx))
        })
        .change(
            ChangeHandler::new("release", On::delete()),
            |scripts, cx| Box::pin(scripts.run(cx)),
        )
        .event(EventHandler::new("seen"), |_, _| Box::pin(async { Ok(()) }))
        .timer(
            TimerHandler::every("tick", Duration::from_secs(1)),
            |_, cx| {
                Box::pin(async move {
                    cx.patch().status(json!({"ticked": true}));
                    Ok(())
                })
            },
        )
        .build();
    let operator = Operator::new("fixture")
        .identity("me")
        .resource(resource)
        .namespaces(Namespaces::Only(namespaces.to_vec()));
    let operator = fixture.start_as(account.clone(), operator).await?;
    for peering in &peerings {
        peering.wait_for(&["me"]).await?;
    }
    let client = fixture.sandbox.client();
    for namespace in &namespaces {
        let widgets: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), namespace, fixture.objects.resource());
        let mut widget = DynamicObject::new("one", fixture.objects.resource());
        widget.data = json!({"spec": {"size": 1}});
        widgets.create(&PostParams::default(), &widget).await?;
        eventually("it is handled", async || {
            let widget = widgets.get("one").await.ok()?;
            let status = &widget.data["status"];
            (status["made"] == true && status["ticked"] == true).then_some(())
        })
        .await?;
        assert_eq!(widgets.get("one").await?.finalizers().len(), 1);
        let events: Api<k8s_openapi::api::core::v1::Event> =
            Api::namespaced(client.clone(), namespace);
        eventually("the failure is reported", async || {
            let events = events.list(&ListParams::default()).await.ok()?;
            let mut messages = events.items.iter().filter_map(|it| it.message.as_deref());
            messages.any(|it| it.contains("not yet")).then_some(())
        })
        .await?;
        widgets.delete("one", &Default::default()).await?;
        eventually("it is released", async || {
            widgets.get_opt("one").await.ok()?.is_none().then_some(())
        })
        .await?;
    }
    operator.stop().await?;
    for peering in &peerings {
        peering.wait_for(&[]).await?;
    }
    let requests = fixture.sandbox.requests_of(&account).await?;
    let refused: Vec<_> = requests.iter().filter(|it| it.code == 403).collect();
    assert!(!requests.is_empty() && refused.is_empty(), "{refused:#?}");
    Ok(())
}
