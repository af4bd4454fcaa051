//! The files of the corpus through our generator, all in one run as a user gives a folder to it.

use std::path::Path;
use std::{fs, io};

use kopf_gen::diagnostic::{Diagnostics, Severity, SourceId, Sources, Style, human};
use kopf_gen::model::resource::CustomResource;
use kopf_gen::types::{self, TypesRequest};
use serde_json::{Value, json};

use crate::corpus::{Corpus, DefinitionFile};
use crate::definition;
use crate::roundtrip::{self, Case};
use crate::scratch::{Module, SourceFile, Supply};

/// What our modules need.
pub const SUPPLY: Supply = Supply {
    generator: "kopf-gen",
    dependencies: r#"k8s-openapi = { version = "0.29", default-features = false, features = ["latest", "std"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
"#,
};

/// Which versions of a definition to make types of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that are served.
    Served,
    /// The one that clients prefer, as kopium does.
    Preferred,
}

/// What became of the files.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// One module per definition.
    pub modules: Vec<Module>,
    /// The type of whole objects, for every version of every definition.
    pub roots: Vec<Root>,
    /// What the generator refuses, with its reasons.
    pub failures: Vec<String>,
}

/// The type of whole objects of one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// The place of the file in the corpus.
    pub index: usize,
    /// The name of the version.
    pub version: String,
    /// The path of the type within the crate.
    pub path: String,
    /// The definition that the types give back.
    pub definition: Value,
}

/// Makes the types of files, in the order given.
///
/// # Errors
/// If a file cannot be read.
pub fn generate(files: &[&DefinitionFile], which: Which) -> io::Result<Generated> {
    let mut sources = Sources::new();
    let mut origins: Vec<(SourceId, usize)> = Vec::new();
    for file in files {
        let text = match which {
            Which::Served => file.read()?,
            Which::Preferred => preferred_only(file.definition()?).to_string(),
        };
        origins.push((
            sources.add(file.path.display().to_string(), text),
            file.index,
        ));
    }
    let ids: Vec<SourceId> = origins.iter().map(|(id, _)| *id).collect();
    let request = TypesRequest::default();
    let mut diagnostics = Diagnostics::new();
    let resources = types::resources(&sources, &ids, &request, &mut diagnostics);
    let mut generated = Generated {
        failures: diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| human(diagnostic, &sources, Style::Plain))
            .collect(),
        ..Generated::default()
    };
    for resource in &resources {
        let files = types::files(resource, &sources, &request.options);
        generated.modules.push(Module {
            name: resource.module.to_string(),
            files: files
                .into_iter()
                .map(|file| SourceFile {
                    path: file.path,
                    text: file.text,
                })
                .collect(),
        });
        if let Some((_, index)) = origins.iter().find(|(id, _)| *id == resource.source) {
            generated.roots.extend(roots(resource, *index));
        }
    }
    Ok(generated)
}

fn roots(resource: &CustomResource, index: usize) -> impl Iterator<Item = Root> {
    resource.versions.iter().map(move |version| Root {
        index,
        version: version.name.clone(),
        path: format!(
            "{}::{}::{}",
            resource.module, version.module, resource.type_name
        ),
        definition: serde_json::from_str(&resource.crd_json).unwrap_or_default(),
    })
}

/// The same definition with only the version served that clients prefer.
fn preferred_only(mut definition: Value) -> Value {
    let versions = definition::versions(&definition);
    let preferred = definition::preferred(&versions).unwrap_or_default();
    for version in definition["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        version["served"] = json!(version["name"] == preferred);
    }
    definition
}

/// Writes the modules into a folder, as the command does.
///
/// # Errors
/// If a file cannot be written.
pub fn write(modules: &[Module], folder: &Path) -> io::Result<()> {
    for file in modules.iter().flat_map(|module| &module.files) {
        let path = folder.join(&file.path);
        if let Some(around) = path.parent() {
            fs::create_dir_all(around)?;
        }
        fs::write(path, &file.text)?;
    }
    Ok(())
}

/// The generated versions with the objects to send through their types.
///
/// # Errors
/// If a definition or a sample cannot be read.
pub fn cases(
    corpus: &Corpus,
    files: &[&DefinitionFile],
    generated: &Generated,
) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for file in files {
        for version in definition::versions(&file.definition()?) {
            let root = generated
                .roots
                .iter()
                .find(|root| root.index == file.index && root.version == version.name);
            if let Some(root) = root {
                cases.push(Case {
                    stem: file.stem.clone(),
                    objects: roundtrip::objects(corpus, file, &version)?,
                    version,
                    path: root.path.clone(),
                });
            }
        }
    }
    Ok(cases)
}
