//! Webhooks: the same requests to the API server have the same results.

use http::{Request, header};
use kopf_tests::pki::Authority;
use kopf_tests::{TestFailure, TestResult, eventually};
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::scenario::{Implementation, ScenarioRun};

/// The responses, calls and configurations of one implementation.
#[derive(Debug, PartialEq)]
struct RecordedResponses {
    responses: Vec<Value>,
    calls: Vec<Value>,
    configurations: Vec<Value>,
}

#[tokio::test]
async fn the_same_requests_are_denied_mutated_and_warned_about() -> TestResult {
    let (kopf, ours) = tokio::try_join!(
        run_scenario(Implementation::Kopf),
        run_scenario(Implementation::Ours)
    )?;
    assert_eq!(kopf.responses, ours.responses);
    assert_eq!(kopf.calls, ours.calls);
    assert_eq!(kopf.configurations, ours.configurations);
    Ok(())
}

#[tokio::test]
async fn webhooks_on_selections_review_the_same_kinds() -> TestResult {
    let (kopf, ours) = tokio::try_join!(
        run_selections(Implementation::Kopf),
        run_selections(Implementation::Ours)
    )?;
    assert_eq!(kopf.responses, ours.responses);
    assert_eq!(kopf.configurations, ours.configurations);
    Ok(())
}

async fn run_selections(implementation: Implementation) -> Result<RecordedResponses, TestFailure> {
    let mut run = ScenarioRun::open("selected_admission", implementation).await?;
    let category = run.sandbox.namespace().to_owned();
    for (kind, category) in [("Doll", category.as_str()), ("Stone", "rocks")] {
        let plural = format!("{}s", kind.to_lowercase());
        let group = run.sandbox.group();
        let schema = "{type: object, x-kubernetes-preserve-unknown-fields: true}";
        let definition = format!(
            "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}, categories: [{category}]}}
  versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}]
"
        );
        run.sandbox.apply(&definition).await?;
    }
    run.set("CATEGORY", &category);
    let (_certificates, managed) = start_with_webhooks(&mut run).await?;
    let mut responses = Vec::new();
    for (kind, warnings) in [("Doll", 2), ("Stone", 1), ("Widget", 1)] {
        let plural = format!("{}s", kind.to_lowercase());
        let body = json!({"kind": kind, "spec": {}});
        let awaited = format!("{kind} is reviewed");
        let answer = eventually(&awaited, async || {
            let answer = send_to(&run, &plural, "POST", "one", "?dryRun=All", body.clone());
            let answer = answer.await.ok()?;
            let heard = answer["warnings"].as_array().map_or(0, Vec::len);
            let completed = kind != "Doll" || answer["spec"]["size"] == 3;
            (heard == warnings && completed).then_some(answer)
        });
        responses.push(answer.await?);
    }
    Ok(RecordedResponses {
        responses,
        calls: Vec::new(),
        configurations: remove_configurations(&run, &managed).await?,
    })
}

/// Starts the operator with certificates for its webhooks; returns their folder, and the name of
/// the webhook configurations.
async fn start_with_webhooks(
    run: &mut ScenarioRun,
) -> Result<(tempfile::TempDir, String), TestFailure> {
    let certificates = tempfile::tempdir()?;
    let authority = Authority::fresh()?;
    let pair = authority.loopback_server()?;
    for (name, text) in [
        ("ca.crt", authority.certificate()),
        ("tls.crt", &pair.certificate),
        ("tls.key", &pair.key),
    ] {
        std::fs::write(certificates.path().join(name), text)?;
    }
    let managed = format!("hooks.{}", run.sandbox.group());
    run.set("MANAGED", &managed);
    run.set("CERTS", &certificates.path().display().to_string());
    run.start().await?;
    Ok((certificates, managed))
}

/// Removes the webhook configurations, and returns their comparable parts.
async fn remove_configurations(
    run: &ScenarioRun,
    managed: &str,
) -> Result<Vec<Value>, TestFailure> {
    let mut configurations = Vec::new();
    for kind in [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ] {
        let objects = run
            .sandbox
            .objects("admissionregistration.k8s.io/v1", kind)
            .await?;
        let object = objects.get(managed).await?;
        for webhook in object.data["webhooks"].as_array().into_iter().flatten() {
            configurations.push(comparable(webhook.clone(), run));
        }
        objects.delete(managed).await?;
    }
    configurations.sort_by_key(|webhook| webhook["name"].to_string());
    Ok(configurations)
}

async fn run_scenario(implementation: Implementation) -> Result<RecordedResponses, TestFailure> {
    let mut run = ScenarioRun::open("admission", implementation).await?;
    let (_certificates, managed) = start_with_webhooks(&mut run).await?;
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    eventually("the API server calls the webhooks", async || {
        let widgets = run.widgets.api();
        let mut widget = kube::api::DynamicObject::new("probe", run.widgets.resource());
        widget.data = json!({"spec": {"warn": "ready"}});
        let made = widgets.create(&dry_run, &widget).await.ok()?;
        let validates = !calls(&run).is_empty();
        (made.data["spec"]["size"] == 3 && validates).then_some(())
    })
    .await?;
    let called_before = calls(&run).len();

    let mut responses = Vec::new();
    let gold = json!({"labels": {"tier": "gold"}});
    let both = json!({"labels": {"tier": "gold", "old": "yes"}});
    for (name, metadata, spec) in [
        ("plain", json!({}), json!({"size": 1})),
        (
            "completed",
            json!({}),
            json!({"remove": 1, "deep": {"a": [1]}}),
        ),
        ("warned", json!({}), json!({"warn": "worth changing"})),
        (
            "denied",
            json!({}),
            json!({"deny": "no way", "code": 499, "warn": "and more"}),
        ),
        ("gold", gold, json!({})),
        ("both", both, json!({})),
    ] {
        let body = json!({"metadata": metadata, "spec": spec});
        responses.push(send_request(&run, "POST", name, "", body).await?);
    }
    let edit = json!({"spec": {"size": 2}});
    responses.push(send_request(&run, "PATCH", "plain", "?dryRun=All", edit.clone()).await?);
    responses.push(send_request(&run, "PATCH", "plain", "", edit).await?);
    let status = json!({"status": {"phase": "Ready"}});
    responses.push(send_request(&run, "PATCH", "plain", "/status", status).await?);
    responses.push(send_request(&run, "DELETE", "completed", "", json!({})).await?);

    let configurations = remove_configurations(&run, &managed).await?;
    let calls = calls(&run).split_off(called_before);
    Ok(RecordedResponses {
        responses,
        calls,
        configurations,
    })
}

/// The calls of the validating webhook.
fn calls(run: &ScenarioRun) -> Vec<Value> {
    let log = run.operator().log();
    let noted = log.lines().filter_map(|line| line.strip_prefix("CALL "));
    noted
        .filter_map(|call| serde_json::from_str(call).ok())
        .collect()
}

/// Sends a request; returns the parts of the response that must be the same on both sides.
async fn send_request(
    run: &ScenarioRun,
    method: &str,
    name: &str,
    rest: &str,
    mut body: Value,
) -> Result<Value, TestFailure> {
    if method == "POST" {
        body["kind"] = "Widget".into();
    }
    send_to(run, "widgets", method, name, rest, body).await
}

async fn send_to(
    run: &ScenarioRun,
    plural: &str,
    method: &str,
    name: &str,
    rest: &str,
    mut body: Value,
) -> Result<Value, TestFailure> {
    let (group, namespace) = (run.sandbox.group(), run.sandbox.namespace());
    let mut uri = format!("/apis/{group}/v1/namespaces/{namespace}/{plural}");
    if method == "POST" {
        body["apiVersion"] = format!("{group}/v1").into();
        body["metadata"]["name"] = name.into();
    } else {
        uri = format!("{uri}/{name}");
    }
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = match method {
        "DELETE" => Vec::new(),
        _ => body.to_string().into_bytes(),
    };
    let request = Request::builder()
        .method(method)
        .uri(format!("{uri}{rest}"))
        .header(header::CONTENT_TYPE, content_type)
        .body(kube::client::Body::from(body))?;
    let response = run.sandbox.client().send(request).await?;
    let status = response.status().as_u16();
    let headers = response.headers().get_all(header::WARNING).iter();
    let mut warnings: Vec<String> = headers
        .filter_map(|value| value.to_str().ok().map(str::to_owned))
        .collect();
    warnings.sort();
    let text = response.into_body().collect_bytes().await?;
    let response: Value = serde_json::from_slice(&text)?;
    let message = response["message"]
        .as_str()
        .map(|text| text.replace(group, "GROUP"));
    Ok(json!({
        "name": name, "status": status, "warnings": warnings,
        "message": message, "spec": response["spec"],
    }))
}

/// A configured webhook without the fields that differ between the implementations.
fn comparable(mut webhook: Value, run: &ScenarioRun) -> Value {
    let ours_alone = ["clientConfig", "namespaceSelector"];
    for key in ours_alone {
        webhook[key] = Value::Null;
    }
    // Neither rules nor labels have an order.
    if let Some(rules) = webhook["rules"].as_array_mut() {
        rules.sort_by_key(|rule| rule["resources"].to_string());
    }
    if let Some(labels) = webhook["objectSelector"]["matchExpressions"].as_array_mut() {
        labels.sort_by_key(|label| label["key"].to_string());
    }
    let text = webhook.to_string().replace(run.sandbox.group(), "GROUP");
    serde_json::from_str(&text).unwrap_or_default()
}
