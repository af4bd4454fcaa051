//! `cargo fmt --check` accepts new crates, whatever the lengths of the names in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::pipeline;
use kopf_gen::plan::{self, CrateEnvironment, InitialHandlers, UserFiles};
use kopf_gen::types::{self, TypesRequest};

/// The longest kind, plural and label that the API server accepts.
const LONGEST: usize = 63;

/// The lengths around which lines of different files reach their width.
const LENGTHS: [usize; 12] = [1, 4, 9, 14, 19, 24, 29, 34, 39, 44, 54, LONGEST];

/// A name of this many letters in words of this many, joined as in snake case.
fn snake(length: usize, word: usize) -> String {
    let letter = |at: usize| if at % (word + 1) == word { '_' } else { 'n' };
    let name: String = (0..length).map(letter).collect();
    name.trim_end_matches('_').to_owned()
}

fn kind(length: usize) -> String {
    format!("K{}", "i".repeat(length - 1))
}

fn definition(kind: &str, field: &str) -> String {
    let plural = kind.to_lowercase();
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: {kind}, listKind: Kinds, plural: {plural}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              {field}: {{type: object, properties: {{a: {{type: string}}}}}}
              labels: {{type: object, additionalProperties: {{type: string}}}}
"
    )
}

fn manifest(operator: &str, name: &str, field: &str) -> String {
    format!(
        "apiVersion: kopf-gen.dev/v1
operator:
  name: {operator}
  handlers: [{{startup: up_{name}}}, {{login: in_{name}}}, {{probe: at_{name}}}]
resources:
- crd: w.yaml
  memo: Memo{memo}
  indices: [{{index: by_{name}}}]
  admission: [{{validate: check_{name}, when: is_{name}}}, {{mutate: change_{name}}}]
  handlers:
  - {{on: [create, update], fn: create_{name}}}
  - {{on: field, field: spec.{field}, fn: field_{name}}}
  - {{on: field, field: spec.labels, fn: labels_{name}}}
  - {{on: event, fn: event_{name}}}
  - {{daemon: run_{name}, initial_delay: {{fn: wait_{name}}}}}
  - {{timer: tick_{name}, interval: 1s}}
",
        memo = kind(name.len()),
    )
}

/// The files of a new crate.
fn new_crate(manifest: &str, crd: &str, initial: InitialHandlers) -> BTreeMap<String, String> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let source = sources.add("kopf.yaml", manifest);
    let read = |_: &str| io::Result::Ok(crd.as_bytes().to_vec());
    let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics)
        .unwrap_or_else(|| panic!("{diagnostics:?}\n{manifest}\n{crd}"));
    let user = UserFiles::default();
    let mut planned = plan::operator(&operator, &sources, &user, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    let environment = CrateEnvironment {
        runtime: "\"1\"".to_owned(),
        testing: "\"1\"".to_owned(),
        has_workspace: false,
    };
    planned.extend(plan::new_crate(&operator, environment, initial));
    let files = pipeline::formatted(planned).into_iter();
    files
        .map(|file| (file.path.to_string(), file.content.into_text()))
        .collect()
}

/// Checks the Rust files that cargo would format: these, and the modules that they declare.
fn check(folder: &Path, roots: &[&str]) {
    let output = Command::new("rustfmt")
        .args(["--check", "--edition", "2024", "--color", "never"])
        .args(roots)
        .current_dir(folder)
        .output()
        .expect("rustfmt is installed with the toolchain");
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{error}");
}

fn write(folder: &Path, files: &BTreeMap<String, String>) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }
}

#[test]
fn new_crates_are_formatted_whatever_the_lengths_of_their_names() {
    for (number, length) in LENGTHS.into_iter().enumerate() {
        // Each name has another length than the one before it, so that they meet in all ways.
        let at = |offset: usize| LENGTHS[(number + offset) % LENGTHS.len()];
        for offset in [0, 4, 7] {
            let field = "f".repeat(at(offset + 2));
            let crd = definition(&kind(length), &field);
            let operator = format!("o{}", "p".repeat(at(offset + 1) - 1));
            let manifest = manifest(&operator, &snake(at(offset), 7), &field);
            let folder = tempfile::tempdir().expect("a folder");
            let files = new_crate(&manifest, &crd, InitialHandlers::Stubs);
            write(folder.path(), &files);
            check(folder.path(), &["src/main.rs", "tests/cluster.rs"]);
        }
    }
}

#[test]
fn handlers_with_children_are_formatted_whatever_the_lengths_of_their_names() {
    for length in LENGTHS {
        let crd = definition(&kind(length), "field");
        let manifest = "apiVersion: kopf-gen.dev/v1
operator: {name: any}
resources:
- crd: w.yaml
  children: [v1/ConfigMap]
  handlers: [{on: reconcile, fn: reconcile}]
";
        let folder = tempfile::tempdir().expect("a folder");
        let files = new_crate(manifest, &crd, InitialHandlers::Children);
        write(folder.path(), &files);
        check(folder.path(), &["src/main.rs"]);
    }
}

#[test]
fn types_alone_are_left_as_they_are() {
    for length in LENGTHS {
        let mut sources = Sources::new();
        let definitions = [
            definition(&kind(length), &"f".repeat(length)),
            definition("Other", "other"),
        ];
        for count in [1, 2] {
            let ids: Vec<_> = definitions[..count]
                .iter()
                .enumerate()
                .map(|(number, text)| sources.add(format!("{number}.yaml"), text.as_str()))
                .collect();
            let request = TypesRequest::default();
            let mut diagnostics = Diagnostics::new();
            let resources = types::resources(&sources, &ids, &request, &mut diagnostics);
            assert!(!diagnostics.has_errors(), "{diagnostics:?}");
            let text = pipeline::text(plan::types_module(&resources, &sources));
            let folder = tempfile::tempdir().expect("a folder");
            write(folder.path(), &[("types.rs".to_owned(), text)].into());
            let files = pipeline::formatted(plan::types(&resources, &sources)).into_iter();
            let files: BTreeMap<String, String> = files
                .map(|file| (format!("folder/{}", file.path), file.content.into_text()))
                .collect();
            write(folder.path(), &files);
            check(folder.path(), &["types.rs", "folder/mod.rs"]);
        }
    }
}
