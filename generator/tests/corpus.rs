//! The definitions of the corpus in `tests/corpus`, one or more for each shape of schemas.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kopf_gen::diagnostic::{Code, Diagnostics, Severity, SourceId, Sources, Style, human};
use kopf_gen::format::FormattedFile;
use kopf_gen::load::crd::{self, NameFix};
use kopf_gen::load::input;
use kopf_gen::model::resource::{CustomResource, VersionChoice};
use kopf_gen::pipeline;
use kopf_gen::plan;
use kopf_gen::types::{self, TypesRequest};

/// A folder of the corpus.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/corpus")
        .join(name)
}

fn read(folder: &Path) -> (Sources, Vec<SourceId>) {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let ids = input::read(
        &[folder.display().to_string()],
        &mut sources,
        &mut diagnostics,
    );
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert!(!ids.is_empty(), "{} has no definitions", folder.display());
    (sources, ids)
}

/// The resources and everything that kopf-gen reports about the definitions.
fn mapped(
    sources: &Sources,
    ids: &[SourceId],
    versions: VersionChoice,
) -> (Vec<CustomResource>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let request = TypesRequest {
        versions,
        ..TypesRequest::default()
    };
    let resources = types::resources(sources, ids, &request, &mut diagnostics);
    (resources, diagnostics)
}

fn resources(sources: &Sources, ids: &[SourceId], versions: VersionChoice) -> Vec<CustomResource> {
    let (resources, diagnostics) = mapped(sources, ids, versions);
    let errors: Vec<String> = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .map(|d| human(d, sources, Style::Plain))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    resources
}

fn texts(resources: &[CustomResource], sources: &Sources) -> Vec<FormattedFile> {
    let planned = resources.iter();
    pipeline::formatted(planned.flat_map(|resource| plan::resource_types(resource, sources)))
}

#[test]
fn every_definition_gives_all_served_versions_and_all_top_level_fields() {
    let (sources, ids) = read(&folder("definitions"));
    let resources = resources(&sources, &ids, VersionChoice::Served);
    assert_eq!(resources.len(), ids.len());
    for id in ids {
        let crds = crd::read(&sources, id, NameFix::Report, &mut Diagnostics::new());
        for crd in &crds {
            let resource = resources.iter().find(|r| r.crd_name == crd.name);
            let resource = resource.unwrap_or_else(|| panic!("{} is missing", crd.name));
            for version in crd.versions.iter().filter(|version| version.served) {
                let mapped = resource.version(&version.name).expect("a served version");
                let fields: BTreeSet<&str> = mapped
                    .root
                    .body
                    .fields
                    .iter()
                    .map(|field| field.json.as_str())
                    .collect();
                let properties: BTreeSet<&str> = version
                    .schema
                    .properties
                    .iter()
                    .map(|property| property.name.as_str())
                    .filter(|name| !["apiVersion", "kind", "metadata"].contains(name))
                    .collect();
                assert_eq!(fields, properties, "{} {}", crd.name, version.name);
            }
        }
    }
}

#[test]
fn the_order_of_files_does_not_matter() {
    let (sources, mut ids) = read(&folder("definitions"));
    let forward = texts(&resources(&sources, &ids, VersionChoice::Served), &sources);
    ids.reverse();
    let backward = texts(&resources(&sources, &ids, VersionChoice::Served), &sources);
    assert!(forward == backward);
}

/// The most lines of types for all definitions of the corpus, a little above those of today.
const MOST_LINES: usize = 7200;

#[test]
fn the_types_have_a_bounded_number_of_lines() {
    let (sources, ids) = read(&folder("definitions"));
    let files = texts(&resources(&sources, &ids, VersionChoice::Served), &sources);
    let rust = files
        .iter()
        .filter(|file| file.path.as_str().ends_with(".rs"));
    let lines: usize = rust.map(|file| file.content.text().lines().count()).sum();
    assert!(lines <= MOST_LINES, "{lines}");
}

#[test]
fn objects_with_equal_fields_share_a_type() {
    // 150 equal objects with seven fields each, in 25 equal objects, in five equal objects.
    let (sources, ids) = read(&folder("definitions/many-properties.yaml"));
    let files = texts(&resources(&sources, &ids, VersionChoice::Storage), &sources);
    let rust = files
        .iter()
        .filter(|file| file.path.as_str().ends_with(".rs"));
    let structs: usize = rust
        .map(|file| file.content.text().matches("pub struct ").count())
        .sum();
    assert_eq!(
        structs, 6,
        "the object, its spec, a room, a row, a stand and a time"
    );
}

#[test]
fn old_definitions_are_upgraded() {
    let (sources, ids) = read(&folder("v1beta1"));
    for id in ids {
        let name = sources.name(id);
        let resources = resources(&sources, &[id], VersionChoice::Served);
        assert_eq!(resources.len(), 1, "{name}");
        assert!(
            resources[0]
                .crd_json
                .as_deref()
                .unwrap_or_default()
                .starts_with("{\"apiVersion\":\"apiextensions.k8s.io/v1\"")
        );
        let keeps_unknown = !sources.text(id).contains("preserveUnknownFields: false");
        for version in &resources[0].versions {
            assert_eq!(version.root.body.rest.is_some(), keeps_unknown, "{name}");
        }
    }
}

/// Schemas that the API server rejects, each with a reason of the API server that kopf-gen gives.
/// `kopf-tests` compares the reasons with those of a real API server.
const NOT_STRUCTURAL: &[(&str, &str)] = &[
    (
        "closed-object",
        "additionalProperties and properties are mutual exclusive",
    ),
    (
        "list-of-items",
        "items must be a schema object and not an array",
    ),
    ("list-of-types", "cannot unmarshal"),
    (
        "missing-type",
        "must not be empty for specified object fields",
    ),
    ("no-schema", "schema.openAPIV3Schema: Required value"),
    ("pattern-properties", "patternProperties is not supported"),
    (
        "properties-and-map",
        "additionalProperties and properties are mutual exclusive",
    ),
    ("references", "$ref is not supported"),
    ("types-in-branches", "must be empty to be structural"),
];

#[test]
fn a_schema_that_is_not_structural_is_reported_at_its_line() {
    let (sources, ids) = read(&folder("not-structural"));
    assert_eq!(ids.len(), NOT_STRUCTURAL.len());
    for (id, (stem, reason)) in ids.into_iter().zip(NOT_STRUCTURAL) {
        assert!(sources.name(id).ends_with(&format!("/{stem}.yaml")));
        let mut diagnostics = Diagnostics::new();
        let _ = crd::read(&sources, id, NameFix::Refuse, &mut diagnostics);
        let place = format!("{stem}.yaml:");
        let mut reported = diagnostics.iter().map(|d| human(d, &sources, Style::Plain));
        assert!(
            reported.any(|text| text.contains(reason) && text.contains(&place)),
            "{stem}: {diagnostics:?}"
        );
        // `types` makes what it can.
        let (resources, _) = mapped(&sources, &[id], VersionChoice::Served);
        assert_eq!(texts(&resources, &sources).is_empty(), resources.is_empty());
    }
}

#[test]
fn a_valid_definition_is_not_reported() {
    let (sources, ids) = read(&folder("definitions"));
    for id in ids {
        let mut diagnostics = Diagnostics::new();
        let _ = crd::read(&sources, id, NameFix::Refuse, &mut diagnostics);
        let mut rejected = diagnostics
            .iter()
            .filter(|d| d.code == Code::RejectedDefinition);
        assert_eq!(rejected.next(), None, "{}", sources.name(id));
    }
}
