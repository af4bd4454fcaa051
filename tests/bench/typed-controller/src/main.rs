//! A Controller that notes in the status of each object that it was handled.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::{info, warn};

/// How many objects are handled at once.
const CONCURRENCY: u16 = 16;

/// The desired state of an example.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, Serialize)]
#[kube(group = "kopf.dev", version = "v1", kind = "KopfExample", namespaced)]
#[kube(status = "KopfExampleStatus")]
struct KopfExampleSpec {
    duration: Option<String>,
    field: Option<String>,
    items: Option<Vec<String>>,
}

/// The observed state of an example.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
struct KopfExampleStatus {
    created: Option<bool>,
}

async fn reconcile(example: Arc<KopfExample>, client: Arc<Client>) -> kube::Result<Action> {
    let created = example.status.as_ref().and_then(|it| it.created);
    if created != Some(true) {
        let (name, namespace) = (example.name_any(), example.namespace().unwrap_or_default());
        info!("{namespace}/{name} is created");
        let examples: Api<KopfExample> = Api::namespaced((*client).clone(), &namespace);
        let status = Patch::Merge(json!({"status": {"created": true}}));
        examples
            .patch_status(&name, &PatchParams::default(), &status)
            .await?;
    }
    Ok(Action::await_change())
}

fn try_later(_: Arc<KopfExample>, error: &kube::Error, _: Arc<Client>) -> Action {
    warn!("a call failed: {error}");
    Action::requeue(Duration::from_secs(1))
}

#[tokio::main]
async fn main() -> kube::Result<()> {
    tracing_subscriber::fmt().init();
    let client = Client::try_default().await?;
    let examples: Api<KopfExample> = Api::all(client.clone());
    Controller::new(examples, watcher::Config::default())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .shutdown_on_signal()
        .run(reconcile, try_later, Arc::new(client))
        .for_each(|_| futures::future::ready(()))
        .await;
    Ok(())
}
