//! Webhooks on selections: the operator configures them for the kinds that match.

use std::collections::BTreeSet;

use kopf_runtime::{AdmissionError, Resource, Selector, ValidationContext, WebhookHandler};
use kopf_tests::sandbox::eventually;
use kopf_tests::{PrivateControlPlane, Sandbox, TestFailure, TestResult};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::fixture::{ReviewRecorder, WebhookFixture};

const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// Defines a kind, or changes its categories.
async fn define(fixture: &WebhookFixture, kind: &str, categories: &str) -> TestResult {
    let (singular, group) = (kind.to_lowercase(), fixture.sandbox.group());
    let definition = format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {singular}s.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: {kind}, plural: {singular}s, singular: {singular}, categories: [{categories}]}}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    );
    fixture.sandbox.apply(&definition).await?;
    Ok(())
}

/// The answer to the creation of an object that is not stored.
async fn create(fixture: &WebhookFixture, kind: &str) -> Result<Option<String>, TestFailure> {
    let version = format!("{}/v1", fixture.sandbox.group());
    let objects = fixture.sandbox.objects(&version, kind).await?;
    let mut object = DynamicObject::new("one", objects.resource());
    object.data = json!({"spec": {}});
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match objects.api().create(&params, &object).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

fn rejecting(fixture: &WebhookFixture, selector: Selector) -> Resource<Value, ReviewRecorder> {
    Resource::selected(selector, &fixture.recorder).validate(
        WebhookHandler::new("check"),
        |_, cx: &mut ValidationContext<Value>| {
            let resource = cx.resource();
            let message = format!("no {} of {}", resource.kind, resource.plural);
            Box::pin(async move { Err(AdmissionError::denied(message)) })
        },
    )
}

async fn wait_for_answer(fixture: &WebhookFixture, kind: &str, part: Option<&str>) -> TestResult {
    eventually(&format!("{kind} is answered with {part:?}"), async || {
        let answer = create(fixture, kind).await.ok()?;
        match (answer, part) {
            (Some(message), Some(part)) => message.contains(part).then_some(()),
            (None, None) => Some(()),
            _ => None,
        }
    })
    .await
}

async fn rules(fixture: &WebhookFixture) -> Result<BTreeSet<String>, TestFailure> {
    let configuration = fixture.configuration(VALIDATING).await?;
    let webhooks = configuration.map(|it| it.data["webhooks"].clone());
    let rules = webhooks.unwrap_or_default()[0]["rules"].clone();
    let rules = rules.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value[0].as_str().unwrap_or_default().to_owned();
    Ok(rules.iter().map(|rule| text(&rule["resources"])).collect())
}

#[tokio::test]
async fn webhooks_of_a_category_follow_its_kinds() -> TestResult {
    let fixture = WebhookFixture::new("reviewed-kinds").await?;
    let category = fixture.sandbox.namespace().to_owned();
    define(&fixture, "Doll", &category).await?;
    define(&fixture, "Stone", "rocks").await?;
    let resource = rejecting(&fixture, Selector::category(&*category));
    let operator = fixture.start(resource, fixture.local_server());
    wait_for_answer(&fixture, "Doll", Some("no Doll of dolls")).await?;
    assert_eq!(create(&fixture, "Stone").await?, None);
    assert_eq!(rules(&fixture).await?, BTreeSet::from(["dolls".to_owned()]));

    define(&fixture, "Kite", &category).await?;
    wait_for_answer(&fixture, "Kite", Some("no Kite of kites")).await?;
    define(&fixture, "Doll", "rocks").await?;
    wait_for_answer(&fixture, "Doll", None).await?;
    assert_eq!(rules(&fixture).await?, BTreeSet::from(["kites".to_owned()]));

    operator.stop().await?;
    wait_for_answer(&fixture, "Kite", None).await?;
    assert!(fixture.configuration(VALIDATING).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_webhook_on_everything_reviews_neither_access_nor_leases() -> TestResult {
    // Other tests would meet the webhook, because cluster-scoped objects are in no namespace.
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "reviewed-all").await?;
    let fixture = WebhookFixture::in_sandbox(sandbox).await?;
    let resource = Resource::selected(Selector::everything(), &fixture.recorder).validate(
        WebhookHandler::new("check").ignore_failures(),
        |recorder: &ReviewRecorder, cx| Box::pin(recorder.check(cx)),
    );
    let operator = fixture
        .start_and_wait(resource, fixture.local_server())
        .await?;
    let reviewed = rules(&fixture).await?;
    for kind in ["widgets", "configmaps", "deployments"] {
        assert!(reviewed.contains(kind), "{kind} in {reviewed:?}");
    }
    for kind in [
        "tokenreviews",
        "subjectaccessreviews",
        "selfsubjectaccessreviews",
        "leases",
        "events",
        "pods/status",
    ] {
        assert!(!reviewed.contains(kind), "{kind} in {reviewed:?}");
    }
    operator.stop().await
}
