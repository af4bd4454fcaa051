//! The CustomResourceDefinitions of an operator: printed for others, or put into the cluster.

use std::io::{self, ErrorKind, Write as _};

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::Value;
use tracing::info;

use super::{Error, Operator};

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

    /// Makes the definitions in the cluster as they are here, and tells what that changed.
    pub(super) async fn apply_crds(&self, client: Client, force: bool) -> Result<(), Error> {
        let mut how = PatchParams::apply(self.name);
        how.force = force;
        for yaml in &self.crds {
            let definitions = read(yaml).map_err(|error| Error::Definition {
                name: None,
                source: error.into(),
            })?;
            for definition in definitions {
                let name = definition["metadata"]["name"].as_str().unwrap_or_default();
                let applied = apply(&client, &how, name, &definition).await;
                let change = applied.map_err(|error| Error::Definition {
                    name: Some(name.to_owned()),
                    source: error.into(),
                })?;
                info!("{name} {change}");
            }
        }
        Ok(())
    }
}

/// The objects in a YAML text.
fn read(yaml: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(yaml)?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

async fn apply(
    client: &Client,
    how: &PatchParams,
    name: &str,
    definition: &Value,
) -> kube::Result<&'static str> {
    let resource = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
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
    use super::*;

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
