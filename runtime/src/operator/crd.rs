//! The command `crd`: prints the CustomResourceDefinitions of an operator, or applies them.

use std::io::{self, ErrorKind, Write as _};
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tracing::info;

use super::{Error, Operator};

/// The time that the API server has to establish a definition.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The reason for which a definition is not established.
#[derive(Debug, thiserror::Error)]
enum CrdError {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("the server does not accept its names: {0}")]
    Names(String),
    #[error("the server does not serve it after {seconds} s: {0}", seconds = ESTABLISHED_WITHIN.as_secs())]
    NotEstablished(String),
}

/// The state of a definition, by its conditions.
#[derive(Debug, PartialEq, Eq)]
enum CrdState {
    Established,
    /// Another definition has the same names.
    NamesRejected(String),
    Pending(String),
}

impl Operator {
    pub(super) fn print_crds(&self) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        let printed = self.crds.iter().try_for_each(|crd| {
            let crd = crd.trim();
            let mark = if crd.starts_with("---") { "" } else { "---\n" };
            writeln!(stdout, "{mark}{crd}")
        });
        match printed.and_then(|()| stdout.flush()) {
            // The reader has closed the pipe early, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            printed => printed,
        }
    }

    /// Applies the definitions by server-side apply, logs what changed, and waits until the API
    /// server has established them.
    pub(super) async fn apply_crds(&self, client: Client, force: bool) -> Result<(), Error> {
        let mut params = PatchParams::apply(self.name);
        params.force = force;
        let api: Api<DynamicObject> = Api::all_with(client, &definitions_resource());
        let mut names = Vec::new();
        for yaml in &self.crds {
            let definitions = read(yaml).map_err(|error| Error::Definition {
                name: None,
                source: error.into(),
            })?;
            for definition in definitions {
                let name = definition["metadata"]["name"].as_str().unwrap_or_default();
                let applied = apply(&api, &params, name, &definition).await;
                let change = applied.map_err(|error| failed(name, error))?;
                info!("{name} {change}");
                names.push(name.to_owned());
            }
        }
        for name in names {
            let established = wait_until_established(&api, &name).await;
            established.map_err(|error| failed(&name, error))?;
        }
        Ok(())
    }
}

fn failed(name: &str, error: impl Into<CrdError>) -> Error {
    Error::Definition {
        name: Some(name.to_owned()),
        source: error.into().into(),
    }
}

/// The objects in a YAML text.
fn read(yaml: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(yaml)?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

fn definitions_resource() -> ApiResource {
    ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    }
}

/// Waits until the API server has established a definition.
async fn wait_until_established(api: &Api<DynamicObject>, name: &str) -> Result<(), CrdError> {
    let deadline = Instant::now() + ESTABLISHED_WITHIN;
    loop {
        let definition = api.get(name).await?;
        match CrdState::of(&definition.data) {
            CrdState::Established => return Ok(()),
            CrdState::NamesRejected(message) => return Err(CrdError::Names(message)),
            CrdState::Pending(message) if Instant::now() >= deadline => {
                return Err(CrdError::NotEstablished(message));
            }
            CrdState::Pending(_) => sleep(POLL_INTERVAL).await,
        }
    }
}

// === impl CrdState ===

impl CrdState {
    fn of(definition: &Value) -> Self {
        let conditions = definition["status"]["conditions"].as_array();
        let find = |kind: &str, status: &str| {
            let mut conditions = conditions.into_iter().flatten();
            let found = conditions.find(|it| it["type"] == kind && it["status"] == status);
            found.map(|it| it["message"].as_str().unwrap_or_default().to_owned())
        };
        if let Some(message) = find("NamesAccepted", "False") {
            Self::NamesRejected(message)
        } else if find("Established", "True").is_some() {
            Self::Established
        } else {
            let unexplained = || "the server gives no reason".to_owned();
            Self::Pending(find("Established", "False").unwrap_or_else(unexplained))
        }
    }
}

async fn apply(
    api: &Api<DynamicObject>,
    params: &PatchParams,
    name: &str,
    definition: &Value,
) -> kube::Result<&'static str> {
    let before = api.get_opt(name).await?;
    let after = api.patch(name, params, &Patch::Apply(definition)).await?;
    let version = |object: &DynamicObject| object.metadata.resource_version.clone();
    Ok(match before {
        None => "is created",
        Some(before) if version(&before) == version(&after) => "is unchanged",
        Some(_) => "is changed",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_of_a_definition_is_read_from_its_conditions() {
        let state =
            |conditions: Value| CrdState::of(&json!({"status": {"conditions": conditions}}));
        let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "message": message});
        let accepted = condition("NamesAccepted", "True", "no conflicts found");
        let taken = condition("NamesAccepted", "False", "\"widgets\" is already in use");
        let waiting = condition("Established", "False", "not all names are accepted");
        let established = condition("Established", "True", "fine");
        assert_eq!(state(json!([accepted, established])), CrdState::Established);
        let pending = "not all names are accepted".to_owned();
        assert_eq!(state(json!([waiting])), CrdState::Pending(pending));
        let message = "\"widgets\" is already in use".to_owned();
        assert_eq!(
            state(json!([taken, waiting])),
            CrdState::NamesRejected(message)
        );
        let unexplained = "the server gives no reason".to_owned();
        assert_eq!(CrdState::of(&json!({})), CrdState::Pending(unexplained));
    }

    #[test]
    fn a_text_may_hold_several_definitions() {
        let yaml = "---\nmetadata: {name: a}\n---\n# nothing\n---\nmetadata: {name: b}\n";
        let names: Vec<_> = read(yaml)
            .unwrap()
            .iter()
            .map(|it| it["metadata"]["name"].clone())
            .collect();
        assert_eq!(names, ["a", "b"]);
    }
}
