//! The CustomResourceDefinitions of an operator: printed for others, or put into the cluster.

use std::io::{self, ErrorKind, Write as _};
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tracing::info;

use super::{Error, Operator};

/// How long the server may take to serve what it was given.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(60);

/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Why a definition is not in force.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("the server does not accept its names: {0}")]
    Names(String),
    #[error("the server does not serve it after {seconds} s: {0}", seconds = ESTABLISHED_WITHIN.as_secs())]
    NotEstablished(String),
}

/// How far the server is with a definition.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Established,
    /// Other definitions have the same names.
    Refused(String),
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
            // Whoever reads has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            printed => printed,
        }
    }

    /// Makes the definitions in the cluster as they are here, tells what that changed, and waits
    /// until the server serves them.
    pub(super) async fn apply_crds(&self, client: Client, force: bool) -> Result<(), Error> {
        let mut how = PatchParams::apply(self.name);
        how.force = force;
        let api: Api<DynamicObject> = Api::all_with(client, &definitions_resource());
        let mut names = Vec::new();
        for yaml in &self.crds {
            let definitions = read(yaml).map_err(|error| Error::Definition {
                name: None,
                source: error.into(),
            })?;
            for definition in definitions {
                let name = definition["metadata"]["name"].as_str().unwrap_or_default();
                let applied = apply(&api, &how, name, &definition).await;
                let change = applied.map_err(|error| failed(name, error))?;
                info!("{name} {change}");
                names.push(name.to_owned());
            }
        }
        for name in names {
            let established = establish(&api, &name).await;
            established.map_err(|error| failed(&name, error))?;
        }
        Ok(())
    }
}

fn failed(name: &str, error: impl Into<Failure>) -> Error {
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

/// Waits until the server serves a definition.
async fn establish(api: &Api<DynamicObject>, name: &str) -> Result<(), Failure> {
    let deadline = Instant::now() + ESTABLISHED_WITHIN;
    loop {
        let definition = api.get(name).await?;
        match Standing::of(&definition.data) {
            Standing::Established => return Ok(()),
            Standing::Refused(story) => return Err(Failure::Names(story)),
            Standing::Pending(story) if Instant::now() >= deadline => {
                return Err(Failure::NotEstablished(story));
            }
            Standing::Pending(_) => sleep(ASK_EVERY).await,
        }
    }
}

// === impl Standing ===

impl Standing {
    fn of(definition: &Value) -> Self {
        let conditions = definition["status"]["conditions"].as_array();
        let find = |kind: &str, status: &str| {
            let mut conditions = conditions.into_iter().flatten();
            let found = conditions.find(|it| it["type"] == kind && it["status"] == status);
            found.map(|it| it["message"].as_str().unwrap_or_default().to_owned())
        };
        if let Some(story) = find("NamesAccepted", "False") {
            Self::Refused(story)
        } else if find("Established", "True").is_some() {
            Self::Established
        } else {
            let silence = || "it does not say why".to_owned();
            Self::Pending(find("Established", "False").unwrap_or_else(silence))
        }
    }
}

async fn apply(
    api: &Api<DynamicObject>,
    how: &PatchParams,
    name: &str,
    definition: &Value,
) -> kube::Result<&'static str> {
    let before = api.get_opt(name).await?;
    let after = api.patch(name, how, &Patch::Apply(definition)).await?;
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
    fn the_conditions_of_a_definition_tell_how_far_the_server_is() {
        let standing =
            |conditions: Value| Standing::of(&json!({"status": {"conditions": conditions}}));
        let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "message": message});
        let accepted = condition("NamesAccepted", "True", "no conflicts found");
        let taken = condition("NamesAccepted", "False", "\"widgets\" is already in use");
        let waiting = condition("Established", "False", "not all names are accepted");
        let established = condition("Established", "True", "fine");
        assert_eq!(
            standing(json!([accepted, established])),
            Standing::Established
        );
        let pending = "not all names are accepted".to_owned();
        assert_eq!(standing(json!([waiting])), Standing::Pending(pending));
        let story = "\"widgets\" is already in use".to_owned();
        assert_eq!(standing(json!([taken, waiting])), Standing::Refused(story));
        let silence = "it does not say why".to_owned();
        assert_eq!(Standing::of(&json!({})), Standing::Pending(silence));
    }

    #[test]
    fn several_definitions_may_share_a_text() {
        let yaml = "---\nmetadata: {name: a}\n---\n# nothing\n---\nmetadata: {name: b}\n";
        let names: Vec<_> = read(yaml)
            .unwrap()
            .iter()
            .map(|it| it["metadata"]["name"].clone())
            .collect();
        assert_eq!(names, ["a", "b"]);
    }
}
