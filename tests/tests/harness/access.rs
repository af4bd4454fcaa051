//! Permissions of users, calls of webhooks, and the audit log.

use kopf_tests::webhook::WebhookReply;
use kopf_tests::{AdmissionWebhook, Sandbox, TestResult, eventually};
use kube::api::{ListParams, WatchParams};
use serde_json::json;

use super::code;

#[tokio::test]
async fn a_user_may_do_what_a_role_binding_grants_and_nothing_else() -> TestResult {
    let sandbox = Sandbox::open("rbac").await?;
    let widgets = sandbox.define("Widget").await?;
    widgets.create("one", json!({})).await?;
    let user = sandbox.user("reader");
    let client = sandbox.control_plane().client(&user).await?;
    let restricted = widgets.clone().through(&client);
    assert_eq!(code(restricted.get("one").await)?, 403);

    sandbox
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: reader}}
rules: [{{apiGroups: [$GROUP], resources: [widgets], verbs: [get]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: reader}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {}}}]
",
            user.name()
        ))
        .await?;

    eventually("the binding is in force", async || {
        restricted.get("one").await.ok()
    })
    .await?;
    assert_eq!(code(restricted.delete("one").await)?, 403);
    assert_eq!(
        code(restricted.api().list(&ListParams::default()).await)?,
        403
    );
    Ok(())
}

#[tokio::test]
async fn the_api_server_calls_an_admission_webhook_on_loopback() -> TestResult {
    let sandbox = Sandbox::open("webhook").await?;
    let widgets = sandbox.define("Widget").await?;
    let webhook = AdmissionWebhook::start(|request| {
        if request["object"]["spec"]["size"] == 13 {
            WebhookReply::Deny("13 is unlucky".to_owned())
        } else {
            WebhookReply::Allow
        }
    })
    .await?;
    let configurations = sandbox
        .objects(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
        )
        .await?;
    let name = sandbox.namespace();
    let hook = json!({"webhooks": [{
        "name": "size.kopf.test",
        "clientConfig": webhook.client_config(),
        "rules": [{
            "apiGroups": [sandbox.group()], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["widgets"],
        }],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }]});
    configurations.create(name, hook).await?;

    // The API server reads a configuration a moment after it is stored.
    let refused = eventually("the webhook denies an object", async || {
        let created = widgets
            .create("unlucky", json!({"spec": {"size": 13}}))
            .await;
        match created {
            Ok(_) => widgets.delete("unlucky").await.err(),
            Err(error) => Some(error),
        }
    })
    .await?;
    widgets
        .create("lucky", json!({"spec": {"size": 7}}))
        .await?;
    configurations.delete(name).await?;

    assert!(refused.to_string().contains("13 is unlucky"), "{refused}");
    let reviewed: Vec<_> = webhook
        .requests()
        .iter()
        .map(|it| it["object"]["metadata"]["name"].clone())
        .collect();
    assert!(reviewed.contains(&json!("lucky")), "{reviewed:?}");
    Ok(())
}

#[tokio::test]
async fn the_requests_of_one_client_are_counted_exactly() -> TestResult {
    let sandbox = Sandbox::open_audited("count").await?;
    let widgets = sandbox.define("Widget").await?;
    let counted = sandbox.administrator("counted");
    let client = sandbox.control_plane().client(&counted).await?;
    let through_it = widgets.clone().through(&client);

    for name in ["one", "two", "three"] {
        through_it.create(name, json!({})).await?;
    }
    through_it
        .merge("one", json!({"spec": {"size": 1}}))
        .await?;
    through_it
        .merge_status("one", json!({"ready": true}))
        .await?;
    assert_eq!(code(through_it.get("missing").await)?, 404);
    let watch = through_it.api().watch(&WatchParams::default(), "0").await?;
    widgets.delete("three").await?;

    let counts = sandbox.count_requests_of(&counted).await?;
    drop(watch);
    assert_eq!(counts.of("widgets", "create"), 3, "{counts:?}");
    assert_eq!(counts.of("widgets", "patch"), 1, "{counts:?}");
    assert_eq!(counts.of("widgets/status", "patch"), 1, "{counts:?}");
    assert_eq!(counts.of("widgets", "get"), 1, "{counts:?}");
    assert_eq!(counts.of("widgets", "watch"), 1, "{counts:?}");
    assert_eq!(counts.total(), 7, "and nothing else: {counts:?}");
    let requests = sandbox.requests_of(&counted).await?;
    let missed = requests.iter().find(|it| it.verb == "get");
    assert_eq!(missed.map(|it| it.code), Some(404));
    Ok(())
}
