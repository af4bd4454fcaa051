//! Reads CustomResourceDefinitions without a manifest, and maps them to resources.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources};
use crate::load::crd::{self, Crd, NameFix};
use crate::model::identifier::RustIdent;
use crate::model::resource::{CustomResource, VersionChoice};
use crate::model::shared_types;
use crate::model::type_options::{OptionPaths, Options};

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
