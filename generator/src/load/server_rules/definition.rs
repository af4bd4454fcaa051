//! The rules for a definition as a whole: its group, versions, columns and subresources.

use super::keywords::{Keywords, NULLABLE, TYPE};
use super::selectable_fields::{self, SELECTABLE_FIELDS};
use super::{Rejections, conversion, open_api, structural};
use crate::load::yaml::{MapEntry, Node};

/// The annotation by which the community approves a definition in one of its groups.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Keywords that the root of a schema may not have beside a status subresource, which takes its
/// own part out of the schema.
const NOT_WITH_STATUS: [&str; 15] = [
    "default",
    "nullable",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "additionalProperties",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];

const COLUMN_FORMATS: &[&str] = &[
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// The longest warning about an old version, in bytes.
const WARNING_LENGTH: usize = 256;

pub(super) fn check(document: &Node, found: &mut Rejections) {
    let Some(spec) = document.get("spec") else {
        return;
    };
    approval(document, spec, found);
    let preserves = spec.entry("preserveUnknownFields");
    if let Some(entry) = preserves.filter(|entry| entry.value.as_bool() == Some(true)) {
        let reason = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        found.add(entry.key.span, reason);
    }
    if let Some(entry) = spec.entry("conversion").filter(|it| !it.value.is_null()) {
        conversion::check(entry, found);
    }
    let Some(versions) = spec.entry("versions") else {
        return;
    };
    let nodes = versions.value.as_seq().unwrap_or_default();
    let is_stored = |node: &&Node| Keywords(node).flag("storage");
    if nodes.iter().filter(is_stored).count() != 1 {
        let reason = "must have exactly one version marked as storage version";
        found.add(versions.key.span, reason);
    }
    // The API server checks parts that all versions have in common as parts of no version.
    let is_common = |key| {
        let mut pairs = nodes.windows(2);
        pairs.all(|pair| part(&pair[0], key) == part(&pair[1], key))
    };
    let has_one_schema = is_common("schema");
    for (place, node) in nodes.iter().enumerate() {
        let path = match has_one_schema {
            true => "spec.validation.openAPIV3Schema".to_owned(),
            false => format!("spec.versions[{place}].schema.openAPIV3Schema"),
        };
        version(node, &path, found);
        let version = Keywords(node);
        let Some(root) = root(version).filter(|_| version.is_set(SELECTABLE_FIELDS)) else {
            continue;
        };
        let reason = match (has_one_schema, is_common(SELECTABLE_FIELDS)) {
            (true, true) | (false, false) => {
                selectable_fields::check(version, root, found);
                continue;
            }
            (true, false) => {
                "may only be set when `version.schema.openAPIV3Schema` is not included"
            }
            (false, true) => "may only be set when validations.schema is included",
        };
        found.add(version.at(SELECTABLE_FIELDS), reason);
    }
}

/// Groups of the community need its approval.
fn approval(document: &Node, spec: &Node, found: &mut Rejections) {
    let Some(group) = spec.get("group") else {
        return;
    };
    let name = group.as_str().unwrap_or_default();
    let is_protected = |domain: &str| name == domain || name.ends_with(&format!(".{domain}"));
    if !["k8s.io", "kubernetes.io"].into_iter().any(is_protected) {
        return;
    }
    let metadata = document.get("metadata").map(Keywords);
    let annotations = metadata.and_then(|it| it.get("annotations"));
    let approval = annotations.map_or("", |it| Keywords(it).text(APPROVAL));
    let is_url = approval.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.starts_with(['/', '?', '#'])
    });
    if !is_url && !approval.starts_with("unapproved") {
        let reason =
            "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
        found.add(group.span, reason);
    }
}

/// A part of a version, to compare it.
fn part(version: &Node, key: &str) -> Option<serde_json::Value> {
    Keywords(version).get(key).map(Node::to_json)
}

/// The root of the schema of a version.
fn root(version: Keywords<'_>) -> Option<Keywords<'_>> {
    let schema = version.get("schema").map(Keywords)?;
    schema.get("openAPIV3Schema").map(Keywords)
}

fn version(node: &Node, path: &str, found: &mut Rejections) {
    let version = Keywords(node);
    deprecation(version, found);
    let subresources = version.get("subresources").map(Keywords);
    let status = subresources.and_then(|it| it.get("status"));
    if let Some(root) = root(version) {
        if status.is_some() {
            root_with_status(root, found);
        }
        if root.flag(NULLABLE) {
            found.add(root.at(NULLABLE), "nullable cannot be true at the root");
        }
        structural::check(root, path, found);
        open_api::check(root, found);
    }
    if let Some(scale) = subresources.and_then(|it| it.get("scale")) {
        scale_paths(Keywords(scale), found);
    }
    for column in version.branches("additionalPrinterColumns") {
        printer_column(column, found);
    }
}

fn deprecation(version: Keywords<'_>, found: &mut Rejections) {
    let Some(warning) = version.get("deprecationWarning").and_then(Node::as_str) else {
        return;
    };
    let reason = if !version.flag("deprecated") {
        "can only be set for deprecated versions"
    } else if warning.is_empty() {
        "must not be an empty string"
    } else if warning.len() > WARNING_LENGTH {
        "must be <= 256 characters long"
    } else if !warning.chars().all(is_printable) {
        "must only contain printable UTF-8 characters"
    } else {
        return;
    };
    found.add(version.at("deprecationWarning"), reason);
}

/// Whether Go prints a character: a space, or neither a control, a format nor another space.
fn is_printable(character: char) -> bool {
    // Rust escapes the same characters, and combining ones only at the start of a text.
    !character.is_ascii_control()
        && (character.is_ascii() || format!("a{character}").escape_debug().nth(2).is_none())
}

fn root_with_status(root: Keywords<'_>, found: &mut Rejections) {
    if !matches!(root.kind(), "" | "object") {
        let reason = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return found.add(root.at(TYPE), reason);
    }
    let entries = root.0.as_map().unwrap_or_default().iter();
    let is_forbidden = |entry: &&MapEntry| {
        let name = entry.key.name.as_str();
        NOT_WITH_STATUS.contains(&name)
            && (root.is_set(name) || name == "default" && root.get(name).is_some())
    };
    if let Some(entry) = entries.into_iter().find(is_forbidden) {
        let reason =
            "fields are allowed at the root of the schema if the status subresource is enabled";
        found.add(entry.key.span, reason);
    }
}

fn scale_paths(scale: Keywords<'_>, found: &mut Rejections) {
    for (key, roots, reason) in [
        (
            "specReplicasPath",
            &[".spec."][..],
            "should be a json path under .spec",
        ),
        (
            "statusReplicasPath",
            &[".status."][..],
            "should be a json path under .status",
        ),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let path = scale.text(key);
        if path.is_empty() {
            if key != "labelSelectorPath" {
                found.add(scale.start(), format!("scale.{key}: Required value"));
            }
        } else if !path.starts_with('.') {
            found.add(scale.at(key), "must be a simple json path starting with .");
        } else if !roots.iter().any(|root| path.starts_with(root)) {
            found.add(scale.at(key), reason);
        }
    }
}

fn printer_column(column: Keywords<'_>, found: &mut Rejections) {
    if column.text("name").is_empty() {
        found.add(column.start(), "name: Required value");
    }
    let one_of = |known: &[&str]| format!("must be one of {}", known.join(","));
    if !COLUMN_TYPES.contains(&column.text("type")) {
        found.add(column.at("type"), one_of(COLUMN_TYPES));
    }
    let format = column.text("format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        found.add(column.at("format"), one_of(COLUMN_FORMATS));
    }
    let path = column.text("jsonPath");
    if path.is_empty() {
        found.add(column.start(), "Path: Required value");
    } else if !path.starts_with('.') {
        let reason = "must be a simple json path starting with .";
        found.add(column.at("jsonPath"), reason);
    }
}
