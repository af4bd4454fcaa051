//! Refusals: missing permissions, webhooks, and versions that are too old.

use kopf_simulation::server::{
    AccessRule, AdmissionAction, AdmissionRule, AdmissionStage, Endpoint, KindId, WatchOptions,
};
use kopf_tests::rewriting_webhook::RewritingWebhook;
use kopf_tests::webhook::WebhookReply;
use kopf_tests::{PrivateControlPlane, Sandbox, TestResult};
use serde_json::{Value, json};

use super::fixed::{create, play};
use super::pair::Pair;
use super::requests::{
    delete, get, json_patch, list, merge, merge_status, object, page, put, put_status,
};

/// The name that the harness gives to its webhook.
const WEBHOOK: &str = "rewriting.kopf.test";

#[tokio::test]
async fn missing_permissions_are_reported_alike() -> TestResult {
    let mut pair = Pair::open("sim-access").await?;
    let (widgets, regions) = (pair.kinds.widgets, pair.kinds.regions);
    let stranger = pair.sandbox().user("stranger");
    pair.act_as(&stranger).await?;
    let verbs = vec![
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    let mut rules = Vec::new();
    for kind in [widgets, regions] {
        for endpoint in [Endpoint::Object, Endpoint::Status] {
            rules.push(AccessRule {
                user: stranger.name().into(),
                kind,
                verbs: verbs.clone(),
                endpoint,
            });
        }
    }
    pair.simulated().set_access_rules(rules);
    for kind in [widgets, regions] {
        let verbs = vec![
            get("a"),
            list(),
            create(&pair, kind, "a", json!({})),
            merge("a", json!({})),
            merge_status("a", json!({})),
            put("a", object(&pair, kind, "a", json!({}))),
            put_status("a", object(&pair, kind, "a", json!({}))),
            delete("a"),
        ];
        play(&mut pair, "access", kind, verbs).await?;
        pair.compare_watch("access", kind, &WatchOptions::default(), None)
            .await?;
    }
    pair.finish()
}

#[tokio::test]
async fn webhooks_deny_and_rewrite_alike() -> TestResult {
    let mut pair = Pair::open("sim-webhooks").await?;
    let kind = pair.kinds.widgets;
    let api_version = pair.api_version(kind);
    let widgets = pair.sandbox().objects(&api_version, "Widget").await?;
    let webhook = RewritingWebhook::register(pair.sandbox(), &widgets, decide).await?;
    let held = json!({"metadata": {"finalizers": ["kopf.test/hold"],
        "annotations": {"kopf.test/old": "x"}}, "spec": {"size": 1}});
    let verbs = vec![create(&pair, kind, "a", held)];
    play(&mut pair, "before", kind, verbs).await?;
    for (mode, action) in [
        (
            "deny",
            AdmissionAction::Deny {
                // The harness gives this code; a webhook that gives none means 400.
                code: Some(403),
                message: "not today".to_owned(),
            },
        ),
        (
            "restore",
            AdmissionAction::RestoreFinalizer("kopf.test/hold".to_owned()),
        ),
        (
            "strip",
            AdmissionAction::StripAnnotations("kopf.test/".to_owned()),
        ),
        ("revert", AdmissionAction::RevertField("spec".to_owned())),
    ] {
        let rule = rule(kind, action);
        pair.simulated().set_webhooks(vec![rule]);
        let verbs = reviewed(mode);
        play(&mut pair, mode, kind, verbs).await?;
    }
    webhook.unregister().await?;
    pair.finish()
}

fn rule(kind: KindId, action: AdmissionAction) -> AdmissionRule {
    AdmissionRule {
        name: WEBHOOK.to_owned(),
        stage: AdmissionStage::Mutating,
        kind,
        endpoint: Endpoint::Object,
        on_create: false,
        action,
    }
}

/// Writes that say in a label what the webhook is to do with them.
fn reviewed(mode: &str) -> Vec<kopf_simulation::server::Verb> {
    let labels = json!({"mode": mode});
    vec![
        merge(
            "a",
            json!({"metadata": {"labels": labels, "annotations": {"kopf.test/new": mode}}}),
        ),
        merge(
            "a",
            json!({"metadata": {"labels": labels}, "spec": {"size": 2}}),
        ),
        merge(
            "a",
            json!({"metadata": {"labels": labels, "finalizers": null}}),
        ),
        merge(
            "a",
            json!({"metadata": {"labels": labels, "resourceVersion": "1"}}),
        ),
        merge(
            "a",
            json!({"metadata": {"labels": labels}, "spec": {"size": "large"}}),
        ),
        json_patch(
            "a",
            json!([{"op": "add", "path": "/metadata/labels", "value": labels}]),
        ),
        merge_status("a", json!({"status": {"phase": mode}})),
        merge("missing", json!({"metadata": {"labels": labels}})),
    ]
}

/// The webhook: it does what the label says.
fn decide(request: &Value) -> WebhookReply {
    let object = &request["object"];
    let old = &request["oldObject"];
    match object["metadata"]["labels"]["mode"].as_str() {
        Some("deny") => WebhookReply::Deny("not today".to_owned()),
        Some("strip") => {
            if object["metadata"].get("annotations").is_none() {
                return WebhookReply::Allow;
            }
            // All of them are Kopf's.
            WebhookReply::Patch(json!([{"op": "remove", "path": "/metadata/annotations"}]))
        }
        Some("revert") => WebhookReply::Patch(json!([
            {"op": "add", "path": "/spec", "value": old["spec"]},
        ])),
        Some("restore") => WebhookReply::Patch(json!([
            {"op": "add", "path": "/metadata/finalizers", "value": old["metadata"]["finalizers"]},
        ])),
        _ => WebhookReply::Allow,
    }
}

#[tokio::test]
async fn old_versions_and_pages_expire_alike() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "sim-expiry").await?;
    let mut pair = Pair::with_sandbox(sandbox).await?;
    let kind = pair.kinds.widgets;
    let mut verbs = Vec::new();
    for name in ["a", "b", "c"] {
        verbs.push(create(&pair, kind, name, json!({})));
    }
    verbs.push(page(1, None));
    verbs.push(create(&pair, kind, "d", json!({})));
    verbs.push(merge("b", json!({"spec": {"size": 1}})));
    play(&mut pair, "before", kind, verbs).await?;
    plane.expire_resource_versions().await?;
    pair.simulated().compact(0);
    let verbs = vec![
        page(1, Some("$token")),
        page(1, Some("$token")),
        page(5, Some("$token")),
    ];
    play(&mut pair, "expired", kind, verbs).await?;
    let options = WatchOptions {
        resource_version: Some("$first-version/a".to_owned()),
        ..WatchOptions::default()
    };
    pair.compare_watch("expired", kind, &options, None).await?;
    pair.finish()
}
