//! Generates the types of the corpus with kopf-gen, all files in one run.

use std::path::Path;
use std::{fs, io};

use kopf_gen::diagnostic::{Diagnostics, Severity, SourceId, Sources, Style, human};
use kopf_gen::model::resource::CustomResource;
use kopf_gen::pipeline;
use kopf_gen::plan;
use kopf_gen::types::{self, TypesRequest};
use serde_json::{Value, json};

use crate::corpus::{Corpus, DefinitionFile};
use crate::definition;
use crate::roundtrip::{self, RoundtripCase};
use crate::scratch_crate::{CrateDependencies, GeneratedModule, ModuleFile};

/// The dependencies of our modules.
pub const DEPENDENCIES: CrateDependencies = CrateDependencies {
    generator: "kopf-gen",
    dependencies: r#"k8s-openapi = { version = "0.29", default-features = false, features = ["latest", "std"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
"#,
};

/// The versions of a definition that get types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSubset {
    /// All that are served.
    Served,
    /// The one that clients prefer, as kopium does.
    Preferred,
}

/// The generated modules and errors.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// One module per definition.
    pub modules: Vec<GeneratedModule>,
    /// The type of whole objects, for every version of every definition.
    pub roots: Vec<RootType>,
    /// The generator's errors.
    pub failures: Vec<String>,
}

/// The type of whole objects of one version.
#[derive(Clone, Debug, PartialEq)]
pub struct RootType {
    /// The index of the file in the corpus.
    pub index: usize,
    /// The name of the version.
    pub version: String,
    /// The path of the type within the crate.
    pub path: String,
    /// The definition that the types contain.
    pub definition: Value,
}

/// Generates the types of files, in the given order.
///
/// # Errors
/// If a file cannot be read.
pub fn generate(files: &[&DefinitionFile], choice: VersionSubset) -> io::Result<Generated> {
    let mut sources = Sources::new();
    let mut origins: Vec<(SourceId, usize)> = Vec::new();
    for file in files {
        let text = match choice {
            VersionSubset::Served => file.read()?,
            VersionSubset::Preferred => preferred_only(file.definition()?).to_string(),
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
        let files = pipeline::formatted(plan::resource_types(resource, &sources));
        generated.modules.push(GeneratedModule {
            name: resource.module.to_string(),
            files: files
                .into_iter()
                .map(|file| ModuleFile {
                    path: file.path.to_string(),
                    text: file.content.into_text(),
                })
                .collect(),
        });
        if let Some((_, index)) = origins.iter().find(|(id, _)| *id == resource.source) {
            generated.roots.extend(roots(resource, *index));
        }
    }
    Ok(generated)
}

fn roots(resource: &CustomResource, index: usize) -> impl Iterator<Item = RootType> {
    resource.versions.iter().map(move |version| RootType {
        index,
        version: version.name.clone(),
        path: format!(
            "{}::{}::{}",
            resource.module, version.module, resource.type_name
        ),
        definition: serde_json::from_str(resource.crd_json.as_deref().unwrap_or_default())
            .unwrap_or_default(),
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

/// Writes the modules into a folder, as `kopf-gen` does.
///
/// # Errors
/// If a file cannot be written.
pub fn write(modules: &[GeneratedModule], folder: &Path) -> io::Result<()> {
    for file in modules.iter().flat_map(|module| &module.files) {
        let path = folder.join(&file.path);
        if let Some(around) = path.parent() {
            fs::create_dir_all(around)?;
        }
        fs::write(path, &file.text)?;
    }
    Ok(())
}

/// The generated versions with the objects to decode and encode.
///
/// # Errors
/// If a definition or a sample cannot be read.
pub fn cases(
    corpus: &Corpus,
    files: &[&DefinitionFile],
    generated: &Generated,
) -> io::Result<Vec<RoundtripCase>> {
    let mut cases = Vec::new();
    for file in files {
        for version in definition::versions(&file.definition()?) {
            let root = generated
                .roots
                .iter()
                .find(|root| root.index == file.index && root.version == version.name);
            if let Some(root) = root {
                cases.push(RoundtripCase {
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
