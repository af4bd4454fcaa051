//! The YAML of the pages is accepted by kopf-gen.

use std::io;

use kopf_gen::diagnostic::{Diagnostics, Sources, Style, human};
use kopf_gen::pipeline;
use serde_json::{Value, json};

use super::blocks::{self, Block};

/// A block that is shown with the indentation of its place.
fn dedented(text: &str) -> String {
    let indents = text.lines().filter(|line| !line.trim().is_empty());
    let indent = indents
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let lines = text
        .lines()
        .map(|line| line.get(indent.unwrap_or(0)..).unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// A whole manifest around an excerpt, or nothing if it is not of a manifest.
fn whole(excerpt: &Value) -> Option<Value> {
    let handlers = |value: &Value| json!([{"crd": "crds/widgets.yaml", "handlers": value}]);
    let (operator, resources) = if excerpt.is_array() {
        (json!({}), handlers(excerpt))
    } else if excerpt["handlers"].is_array() || excerpt["uses"].is_array() {
        let mut resource = excerpt.clone();
        resource["crd"] = json!("crds/widgets.yaml");
        (json!({}), json!([resource]))
    } else if excerpt["settings"].is_object() {
        (json!({"settings": excerpt["settings"]}), json!([]))
    } else if excerpt["operator"].is_object() || excerpt["resources"][0].is_object() {
        let operator = excerpt["operator"].clone();
        let operator = if operator.is_null() {
            json!({})
        } else {
            operator
        };
        (operator, excerpt["resources"].clone())
    } else {
        return None;
    };
    let mut operator = operator;
    if operator["name"].is_null() {
        operator["name"] = json!("my-operator");
    }
    let resources = if resources.is_null() {
        json!([])
    } else {
        resources
    };
    Some(json!({"apiVersion": "kopf-gen.dev/v1", "operator": operator, "resources": resources}))
}

/// The value of a block of YAML.
fn excerpt(block: &Block) -> Result<Value, String> {
    let parsed = serde_saphyr::from_str(&dedented(&block.text));
    parsed.map_err(|error| format!("{}: {error}", block.place()))
}

/// Whether the block is a part of a manifest, which the test below validates.
pub(crate) fn is_manifest(block: &Block) -> bool {
    let parsed = excerpt(block).ok();
    block.note("file").is_none() && parsed.and_then(|it| whole(&it)).is_some()
}

/// A definition for a file that a page names, such as `crds/widgets.yaml`.
fn definition(path: &str) -> io::Result<Vec<u8>> {
    let plural = path
        .strip_prefix("crds/")
        .and_then(|it| it.strip_suffix(".yaml"));
    let kinds = [
        ("ephemeralvolumeclaims", "EphemeralVolumeClaim"),
        ("kopfexamples", "KopfExample"),
        ("mailboxes", "Mailbox"),
        ("websites", "Website"),
        ("widgets", "Widget"),
    ];
    let found = kinds.iter().find(|(it, _)| plural == Some(it));
    let Some((plural, kind)) = found else {
        let message = format!("no page defines {path}");
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.kopf.dev")},
        "spec": {
            "group": "kopf.dev",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    });
    Ok(definition.to_string().into_bytes())
}

/// The fields that the pages refer to.
fn schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "size": text,
                "quota": text,
                "class": text,
                "tier": text,
                "created": {"type": "string", "format": "date-time"},
                "mode": {"type": "string", "enum": ["one", "two"]},
                "template": {"type": "object", "properties": {"size": text}},
                "secretRef": {"type": "object", "properties": {"name": text}},
                "sources": {"type": "array", "items": {"type": "object", "properties": {"name": text}}},
                "sourceNamespace": text,
            }},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    })
}

/// What `kopf-gen validate` says against a manifest, if it has errors.
fn rejection(page: &str, manifest: &Value) -> Option<String> {
    let mut sources = Sources::new();
    let source = sources.add(page.to_owned(), manifest.to_string());
    let mut diagnostics = Diagnostics::new();
    let read = pipeline::read_operator(&mut sources, source, &definition, &mut diagnostics);
    if read.is_some() && !diagnostics.has_errors() {
        return None;
    }
    let all = diagnostics
        .iter()
        .map(|it| human(it, &sources, Style::Plain));
    Some(all.collect())
}

#[test]
fn the_manifests_of_all_pages_are_valid() {
    let (mut count, mut problems) = (0, Vec::new());
    let yaml = blocks::all().into_iter().filter(|it| it.language == "yaml");
    for block in yaml {
        let manifest = match excerpt(&block) {
            Ok(value) if is_manifest(&block) => whole(&value),
            Ok(_) => None,
            Err(error) => {
                problems.push(error);
                None
            }
        };
        let Some(manifest) = manifest else {
            continue;
        };
        count += 1;
        if let Some(rejection) = rejection(&block.place(), &manifest) {
            problems.push(format!("{}{}\n{rejection}", block.place(), block.text));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 30, "only {count} manifests");
}

#[test]
fn a_manifest_that_names_no_field_of_its_kind_is_rejected() {
    let handlers = json!([{"on": "update", "field": "spec.colour", "fn": "paint"}]);
    let manifest = whole(&handlers).expect("a list of handlers is a part of a manifest");
    let rejection = rejection("page", &manifest).unwrap_or_default();
    assert!(rejection.contains("spec.colour"), "{rejection}");
}
