//! The rules for a definition as a whole: its group, versions, columns and subresources.

use super::keywords::{Keywords, NULLABLE, TYPE};
use super::{Rejections, open_api, structural};
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
        conversion(entry, found);
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
    for (place, node) in nodes.iter().enumerate() {
        // The API server checks the schema of a single version as one for all versions.
        let path = match nodes.len() {
            1 => "spec.validation.openAPIV3Schema".to_owned(),
            _ => format!("spec.versions[{place}].schema.openAPIV3Schema"),
        };
        version(node, &path, found);
    }
}

fn conversion(entry: &MapEntry, found: &mut Rejections) {
    let conversion = Keywords(&entry.value);
    let webhook = conversion.get("webhook").map(Keywords);
    let client = webhook.and_then(|it| it.get("clientConfig")).map(Keywords);
    match conversion.text("strategy") {
        "Webhook" => {}
        "None" => {
            if client.is_some() {
                let reason = "should not be set when strategy is not set to Webhook";
                found.add(conversion.at("webhook"), reason);
            }
            return;
        }
        "" => return found.add(entry.key.span, "conversion.strategy: Required value"),
        other => {
            let strategies = ["None", "Webhook"];
            return found.unsupported(conversion.at("strategy"), other, &strategies);
        }
    }
    match client {
        None => found.add(entry.key.span, "required when strategy is set to Webhook"),
        Some(client) => conversion_client(client, found),
    }
    let versions = webhook.map(|it| it.strings("conversionReviewVersions"));
    let versions = versions.unwrap_or_default();
    if versions.is_empty() {
        found.add(entry.key.span, "conversionReviewVersions: Required value");
    } else if !versions.iter().any(|it| matches!(*it, "v1" | "v1beta1")) {
        let place = webhook.map_or(entry.key.span, |it| it.at("conversionReviewVersions"));
        found.add(place, "must include at least one of v1, v1beta1");
    }
}

fn conversion_client(client: Keywords<'_>, found: &mut Rejections) {
    let service = client.get("service").map(Keywords);
    if service.is_some() == client.get("url").is_some() {
        found.add(client.start(), "exactly one of url or service is required");
    } else if let Some(service) = service {
        for key in ["name", "namespace"] {
            if service.text(key).is_empty() {
                found.add(service.start(), format!("service.{key}: Required value"));
            }
        }
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

fn version(node: &Node, path: &str, found: &mut Rejections) {
    let version = Keywords(node);
    deprecation(version, found);
    let subresources = version.get("subresources").map(Keywords);
    let status = subresources.and_then(|it| it.get("status"));
    let schema = version.get("schema").map(Keywords);
    if let Some(root) = schema.and_then(|it| it.get("openAPIV3Schema")) {
        let root = Keywords(root);
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
    } else if warning.chars().any(char::is_control) {
        "must only contain printable UTF-8 characters"
    } else {
        return;
    };
    found.add(version.at("deprecationWarning"), reason);
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
