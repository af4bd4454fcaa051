//! A mutating webhook that rewrites updates of a sandbox's objects.

use serde_json::{Value, json};

use crate::sandbox::{Objects, Sandbox, eventually};
use crate::test_failure::TestFailure;
use crate::webhook::{AdmissionWebhook, WebhookReply};

/// The prefix of Kopf's annotations.
const KOPF_PREFIX: &str = "kopf.zalando.org/";

/// A webhook for updates of one kind, registered until [`RewritingWebhook::unregister`].
pub struct RewritingWebhook {
    configurations: Objects,
    name: String,
    // Serves until it is dropped.
    _webhook: AdmissionWebhook,
}

// === impl RewritingWebhook ===

impl RewritingWebhook {
    /// Registers the webhook and waits until the API server calls it.
    pub async fn register(
        sandbox: &Sandbox,
        objects: &Objects,
        decide: impl Fn(&Value) -> WebhookReply + Send + Sync + 'static,
    ) -> Result<Self, TestFailure> {
        let webhook = AdmissionWebhook::start(decide).await?;
        let configurations = sandbox
            .objects(
                "admissionregistration.k8s.io/v1",
                "MutatingWebhookConfiguration",
            )
            .await?;
        let rule = json!({
            "apiGroups": [sandbox.group()], "apiVersions": ["v1"],
            "operations": ["UPDATE"], "resources": [objects.resource().plural],
        });
        let hook = json!({"webhooks": [{
            "name": "rewriting.kopf.test",
            "clientConfig": webhook.client_config(),
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }]});
        let name = sandbox.namespace().to_owned();
        configurations.create(&name, hook).await?;
        objects.create("probe", json!({"spec": {}})).await?;
        let mut attempt = 0;
        eventually("the API server calls the webhook", async || {
            attempt += 1;
            let edit = json!({"spec": {"attempt": attempt}});
            objects.merge("probe", edit).await.ok()?;
            (!webhook.requests().is_empty()).then_some(())
        })
        .await?;
        objects.delete("probe").await?;
        Ok(Self {
            configurations,
            name,
            _webhook: webhook,
        })
    }

    /// Removes the webhook configuration, so that later updates pass unchanged.
    pub async fn unregister(self) -> Result<(), TestFailure> {
        self.configurations.delete(&self.name).await?;
        Ok(())
    }
}

/// Removes all annotations of Kopf from an update, and adds one of its own.
pub fn strip_kopf_annotations(request: &Value) -> WebhookReply {
    let mut annotations = request["object"]["metadata"]["annotations"].clone();
    let Some(map) = annotations.as_object_mut() else {
        return WebhookReply::Allow;
    };
    map.retain(|name, _| !name.starts_with(KOPF_PREFIX));
    map.insert("rewriting.test/request".to_owned(), request["uid"].clone());
    WebhookReply::Patch(json!([
        {"op": "replace", "path": "/metadata/annotations", "value": annotations},
    ]))
}
