//! Real definitions, read from `../shared/corpus` or from where `KOPF_CORPUS` points.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use kopf_gen::diagnostic::{Diagnostics, Severity, SourceId, Sources, Style, human};
use kopf_gen::load::crd::{self, NameFix};
use kopf_gen::load::input;
use kopf_gen::model::resource::{CustomResource, VersionChoice};
use kopf_gen::types::{self, TypesRequest};

/// A third of what kopium 0.24.1 prints for these files, one version each.
const MOST_LINES: usize = 346_144 / 3;

/// The folder of the corpus; without it the tests print a message and check nothing.
fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("KOPF_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus"),
        PathBuf::from,
    );
    if folder.join("dev").is_dir() {
        return Some(folder);
    }
    let line = format!("NOT TESTED: there is no corpus at {}\n", folder.display());
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("standard error");
    None
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
    (sources, ids)
}

fn resources(sources: &Sources, ids: &[SourceId], versions: VersionChoice) -> Vec<CustomResource> {
    let mut diagnostics = Diagnostics::new();
    let request = TypesRequest {
        versions,
        ..TypesRequest::default()
    };
    let resources = types::resources(sources, ids, &request, &mut diagnostics);
    let errors: Vec<String> = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .map(|d| human(d, sources, Style::Plain))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    resources
}

fn texts(resources: &[CustomResource], sources: &Sources) -> Vec<types::TypesFile> {
    let options = TypesRequest::default().options;
    resources
        .iter()
        .flat_map(|resource| types::files(resource, sources, &options))
        .collect()
}

#[test]
fn every_definition_gives_all_served_versions_and_all_top_level_fields() {
    let Some(corpus) = corpus() else { return };
    let (sources, ids) = read(&corpus.join("dev"));
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
    let Some(corpus) = corpus() else { return };
    let (sources, mut ids) = read(&corpus.join("dev"));
    ids.truncate(80);
    let forward = texts(&resources(&sources, &ids, VersionChoice::Served), &sources);
    ids.reverse();
    let backward = texts(&resources(&sources, &ids, VersionChoice::Served), &sources);
    assert!(forward == backward);
}

#[test]
fn one_version_each_takes_at_most_a_third_of_the_lines_of_kopium() {
    let Some(corpus) = corpus() else { return };
    let (sources, ids) = read(&corpus.join("dev"));
    let files = texts(&resources(&sources, &ids, VersionChoice::Storage), &sources);
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let lines: usize = rust.map(|file| file.text.lines().count()).sum();
    assert!(lines <= MOST_LINES, "{lines} lines, {MOST_LINES} allowed");
}

#[test]
fn old_definitions_are_upgraded() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("v1beta1");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the folder of old definitions") {
        let path = entry.expect("an entry").path();
        let mut sources = Sources::new();
        let text = fs::read_to_string(&path).expect("a definition");
        let id = sources.add(path.display().to_string(), text);
        let resources = resources(&sources, &[id], VersionChoice::Served);
        assert_eq!(resources.len(), 1, "{}", path.display());
        assert!(
            resources[0]
                .crd_json
                .starts_with("{\"apiVersion\":\"apiextensions.k8s.io/v1\"")
        );
        assert!(
            resources[0]
                .versions
                .iter()
                .all(|v| v.root.body.rest.is_some())
        );
        count += 1;
    }
    assert!(count > 0);
}
