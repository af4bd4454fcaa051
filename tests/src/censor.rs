//! A mutating webhook that changes whatever is written to the objects of a sandbox.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::sandbox::{Objects, Sandbox, eventually};
use crate::webhook::{AdmissionWebhook, Verdict};

/// What the names of Kopf's annotations begin with.
const RECORDS: &str = "kopf.zalando.org/";

/// A webhook for the updates of one kind, in force until it retires.
pub struct Censor {
    configurations: Objects,
    name: String,
    webhook: AdmissionWebhook,
}

// === impl Censor ===

impl Censor {
    /// Begins to change updates, and waits until the server asks for that.
    pub async fn of(
        sandbox: &Sandbox,
        objects: &Objects,
        decide: impl Fn(&Value) -> Verdict + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
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
            "name": "censor.kopf.test",
            "clientConfig": webhook.client_config(),
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }]});
        let name = sandbox.namespace().to_owned();
        configurations.create(&name, hook).await?;
        objects.create("probe", json!({"spec": {}})).await?;
        let mut attempt = 0;
        eventually("the webhook is asked", async || {
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
            webhook,
        })
    }

    /// How many updates of an object were made so far.
    pub fn updates_of(&self, name: &str) -> usize {
        let requests = self.webhook.requests();
        requests.iter().filter(|it| it["name"] == name).count()
    }

    /// Lets everything pass from now on.
    pub async fn retire(self) -> Result<(), Failure> {
        self.configurations.delete(&self.name).await?;
        Ok(())
    }
}

/// Takes away all annotations of Kopf, and leaves a stamp instead, as webhooks like to do.
pub fn without_records(request: &Value) -> Verdict {
    let mut annotations = request["object"]["metadata"]["annotations"].clone();
    let Some(map) = annotations.as_object_mut() else {
        return Verdict::Allow;
    };
    map.retain(|name, _| !name.starts_with(RECORDS));
    map.insert("censor.test/request".to_owned(), request["uid"].clone());
    Verdict::Patch(json!([
        {"op": "replace", "path": "/metadata/annotations", "value": annotations},
    ]))
}
