//! Generates the types of CustomResourceDefinitions as text, without writing files.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, harmless};
use crate::format;
use crate::load::crd::{self, Crd, NameFix};
use crate::model::identifier::RustIdent;
use crate::model::resource::{CustomResource, VersionChoice};
use crate::model::shared_types;
use crate::model::type_options::{OptionPaths, Options};
use crate::rust::RustModule;
use crate::view::module::{self, TypesLayout};

/// The options for a run that generates types only.
#[derive(Clone, Debug, Default)]
pub struct TypesRequest {
    /// The versions.
    pub versions: VersionChoice,
    /// The treatment of names that the API server rejects.
    pub names: NameFix,
    /// The options of the types.
    pub options: Options,
}

/// A generated file, relative to the folder of the types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypesFile {
    /// The path, with slashes.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// Reads the CRDs in the sources and maps them, sorted by group and kind.
#[must_use]
pub fn resources(
    sources: &Sources,
    ids: &[SourceId],
    request: &TypesRequest,
    diagnostics: &mut Diagnostics,
) -> Vec<CustomResource> {
    let mut crds: BTreeMap<String, Crd> = BTreeMap::new();
    for id in ids {
        for crd in crd::read(sources, *id, request.names, diagnostics) {
            add(crd, &mut crds, diagnostics);
        }
    }
    if crds.is_empty() && !diagnostics.has_errors() {
        let message = "there is no CustomResourceDefinition in the inputs";
        diagnostics.push(Diagnostic::error(Code::NothingFound, message));
    }
    if let VersionChoice::Named(names) = &request.versions {
        keep_versions(names, &mut crds, diagnostics);
    }
    let mut paths = OptionPaths::default();
    let mut resources: Vec<CustomResource> = crds
        .into_values()
        .filter_map(|crd| {
            CustomResource::new(
                crd,
                &request.versions,
                &request.options,
                &mut paths,
                diagnostics,
            )
        })
        .collect();
    request.options.report_unknown_paths(&paths, diagnostics);
    resources.sort_by(|a, b| (&a.group, &a.names.kind).cmp(&(&b.group, &b.names.kind)));
    separate(&mut resources);
    let mut all: Vec<&mut CustomResource> = resources.iter_mut().collect();
    shared_types::across(&mut all);
    diagnostics.sort();
    resources
}

fn add(crd: Crd, crds: &mut BTreeMap<String, Crd>, diagnostics: &mut Diagnostics) {
    let key = format!("{}.{}", crd.names.plural, crd.group);
    if let Some(other) = crds.get(&key) {
        if other.json != crd.json {
            diagnostics.push(
                Diagnostic::error(Code::DuplicateCrd, format!("`{key}` is defined twice"))
                    .at(crd.source, crd.span, "again here")
                    .at(other.source, other.span, "first here"),
            );
        }
        return;
    }
    crds.insert(key, crd);
}

/// Leaves out CRDs that have none of the versions, and reports versions that no CRD has.
fn keep_versions(
    names: &BTreeSet<String>,
    crds: &mut BTreeMap<String, Crd>,
    diagnostics: &mut Diagnostics,
) {
    let known: BTreeSet<String> = crds
        .values()
        .flat_map(|crd| crd.versions.iter().map(|version| version.name.clone()))
        .collect();
    if let Some(first) = crds.values().next() {
        for name in names.difference(&known) {
            let message = format!("no CRD has a version `{name}`");
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            diagnostics.push(
                Diagnostic::error(Code::NoVersion, message)
                    .at(first.source, first.span, "")
                    .help(format!("there is {}", known.join(", "))),
            );
        }
    }
    crds.retain(|_, crd| {
        let has_one = crd
            .versions
            .iter()
            .any(|version| names.contains(&version.name));
        if !has_one {
            let message = format!("`{}` has no such version and is left out", crd.name);
            diagnostics
                .push(Diagnostic::info(Code::NoVersion, message).at(crd.source, crd.span, ""));
        }
        has_one
    });
}

/// Adds the group to the modules of kinds with equal names.
fn separate(resources: &mut [CustomResource]) {
    let mut count: BTreeMap<RustIdent, usize> = BTreeMap::new();
    for resource in &*resources {
        *count.entry(resource.module.clone()).or_default() += 1;
    }
    let mut taken = BTreeSet::new();
    for resource in resources {
        let name = if count[&resource.module] > 1 {
            let group = resource.group.split('.').next().unwrap_or_default();
            RustIdent::of_module(&format!("{}_{group}", resource.module.bare()))
        } else {
            resource.module.clone()
        };
        resource.module = name.or_numbered(&mut taken);
    }
}

/// One text with all resources; each is a module unless there is only one.
#[must_use]
pub fn text(resources: &[CustomResource], sources: &Sources) -> String {
    match resources {
        [resource] => printed(
            &header(resource, sources),
            module::resource(resource, TypesLayout::Inline),
        ),
        _ => printed(&index_header(), module::bundle(resources)),
    }
}

/// The files of one resource: its module, its versions and the definition.
#[must_use]
pub fn files(resource: &CustomResource, sources: &Sources) -> Vec<TypesFile> {
    let folder = resource.module.bare();
    let header = header(resource, sources);
    let mut files = vec![
        TypesFile {
            path: format!("{folder}.rs"),
            text: printed(&header, module::resource(resource, TypesLayout::Files)),
        },
        TypesFile {
            path: format!("{folder}/crd.json"),
            text: resource.crd_json.clone() + "\n",
        },
    ];
    files.extend(resource.versions.iter().map(|version| TypesFile {
        path: format!("{folder}/{}.rs", version.module.bare()),
        text: printed(&header, module::version(resource, version)),
    }));
    files
}

/// The module that holds the modules of several resources.
#[must_use]
pub fn index(resources: &[CustomResource]) -> TypesFile {
    TypesFile {
        path: "mod.rs".to_owned(),
        text: printed(&index_header(), module::index(resources)),
    }
}

fn header(resource: &CustomResource, sources: &Sources) -> String {
    let name = sources.name(resource.source);
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    format!("{} from {}. Do not edit.\n\n", made_by(), harmless(file))
}

fn index_header() -> String {
    format!("{}. Do not edit.\n\n", made_by())
}

fn printed(header: &str, module: RustModule) -> String {
    format!("{header}{}", format::rust(module))
}

fn made_by() -> String {
    format!("// @generated by kopf-gen {}", env!("CARGO_PKG_VERSION"))
}
