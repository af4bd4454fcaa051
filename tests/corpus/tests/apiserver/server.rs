//! Definitions and objects on a real API server, all as plain JSON.

use std::time::Duration;

use http::Request;
use kopf_corpus::definition::{DefinitionVersion, Scope};
use kopf_corpus::rejected_fields::FieldCause;
use kube::Client;
use serde_json::{Value, json};

/// The API server's response to a dry run.
pub(crate) enum DryRunResponse {
    /// The API server would store this object.
    Accepted(Value),
    /// The API server rejects the object for these causes.
    Refused {
        message: String,
        causes: Vec<FieldCause>,
    },
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The time limit for a definition to be served or deleted.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// The definition as the test installs it: without a status subresource, so that the status is
/// validated too, and without a conversion webhook.
pub(crate) fn prepared(definition: &Value) -> Value {
    let mut definition = definition.clone();
    if let Some(members) = definition.as_object_mut() {
        members.shift_remove("status");
    }
    definition["metadata"] = json!({
        "name": definition["metadata"]["name"],
        "annotations": {"api-approved.kubernetes.io": "unapproved, on a server for tests"},
    });
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    for version in definition["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        if let Some(subresources) = version["subresources"].as_object_mut() {
            subresources.shift_remove("status");
        }
    }
    definition
}

/// Installs a definition and waits until its versions are served; the error is the API server's.
pub(crate) async fn install(
    client: &Client,
    definition: &Value,
    versions: &[DefinitionVersion],
) -> Result<(), String> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    send(client, "POST", DEFINITIONS, Some(definition))
        .await
        .map_err(|error| error.to_string())?;
    let path = format!("{DEFINITIONS}/{name}");
    until(|| async {
        let stored = send(client, "GET", &path, None).await.ok()?;
        let established = stored["status"]["conditions"]
            .as_array()?
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
        established.then_some(())
    })
    .await?;
    for version in versions.iter().filter(|version| version.served) {
        let path = format!("/apis/{}/{}?limit=1", version.api_version(), version.plural);
        until(|| async { send(client, "GET", &path, None).await.ok() }).await?;
    }
    Ok(())
}

/// Deletes a definition and waits until it is gone.
pub(crate) async fn uninstall(client: &Client, name: &str) -> Result<(), String> {
    let path = format!("{DEFINITIONS}/{name}");
    send(client, "DELETE", &path, None)
        .await
        .map_err(|error| error.to_string())?;
    until(|| async {
        match send(client, "GET", &path, None).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Some(()),
            _ => None,
        }
    })
    .await
}

/// Creates an object in a dry run with strict validation.
pub(crate) async fn dry_run(
    client: &Client,
    version: &DefinitionVersion,
    object: &Value,
) -> kube::Result<DryRunResponse> {
    let namespace = match version.scope {
        Scope::Namespaced => "/namespaces/default",
        Scope::Cluster => "",
    };
    let path = format!(
        "/apis/{}{namespace}/{}?dryRun=All&fieldValidation=Strict",
        version.api_version(),
        version.plural
    );
    match send(client, "POST", &path, Some(object)).await {
        Ok(stored) => Ok(DryRunResponse::Accepted(stored)),
        Err(kube::Error::Api(status)) if status.code < 500 => {
            let causes = status.details.as_ref().map(|details| {
                let cause = |cause: &kube::core::response::StatusCause| FieldCause {
                    field: cause.field.clone(),
                    message: cause.message.clone(),
                };
                details.causes.iter().map(cause).collect()
            });
            Ok(DryRunResponse::Refused {
                message: status.message.clone(),
                causes: causes.unwrap_or_default(),
            })
        }
        Err(error) => Err(error),
    }
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> kube::Result<Value> {
    let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

async fn until<T, F: Future<Output = Option<T>>>(
    mut ready: impl FnMut() -> F,
) -> Result<T, String> {
    let wait = async {
        loop {
            if let Some(value) = ready().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(DEFAULT_TIMEOUT, wait)
        .await
        .map_err(|_| "the definition is not served".to_owned())
}
