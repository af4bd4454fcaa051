//! The activity of the application: it creates, changes and deletes an object.

use std::time::Duration;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::Failure;
use crate::generated::kopf_example::KopfExample;

const NAME: &str = "kopf-example-1";

/// The annotation with the state that the operator has handled.
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// How long the operator may take for one step.
const PATIENCE: Duration = Duration::from_secs(60);

/// Creates an object, changes and deletes it, and waits each time for the operator.
pub async fn run(namespace: &str) -> Result<(), Failure> {
    let client = Client::try_default().await?;
    let examples: Api<KopfExample> = Api::namespaced(client, namespace);
    let mut example = KopfExample::default();
    example.metadata.name = Some(NAME.to_owned());
    example
        .labels_mut()
        .insert("somelabel".into(), "somevalue".into());
    example
        .annotations_mut()
        .insert("someannotation".into(), "somevalue".into());
    example.spec.field = Some("value".into());
    example.spec.items = Some(["item1", "item2"].map(Into::into).into());
    examples.create(&PostParams::default(), &example).await?;
    let result = until_handled(&examples, "value", "create_fn").await?;
    let message = &result["message"];
    println!("The application has created an object: {message}");

    let change = Patch::Merge(json!({"spec": {"field": "changed"}}));
    examples
        .patch(NAME, &PatchParams::default(), &change)
        .await?;
    let updates = until_handled(&examples, "changed", "updates").await?;
    println!("The application has changed the object: {updates}");

    examples.delete(NAME, &DeleteParams::default()).await?;
    let gone = async {
        while examples.get_opt(NAME).await?.is_some() {
            sleep(Duration::from_millis(200)).await;
        }
        Ok::<(), kube::Error>(())
    };
    timeout(PATIENCE, gone).await??;
    println!("The application has deleted the object.");
    Ok(())
}

/// Waits until the operator has handled the object with this value of its field, and returns what it
/// has written to the status.
async fn until_handled(
    examples: &Api<KopfExample>,
    field: &str,
    written: &str,
) -> Result<Value, Failure> {
    let handled = async {
        loop {
            let example = examples.get(NAME).await?;
            let state = example.annotations().get(LAST_HANDLED);
            let is_handled = state.is_some_and(|state| state.contains(field));
            let written = example.status.as_ref().and_then(|it| it.get(written));
            if let (true, Some(written)) = (is_handled, written) {
                return Ok::<_, kube::Error>(written.clone());
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    Ok(timeout(PATIENCE, handled).await??)
}
