//! The rules for single keywords of schemas, and for keywords that do not fit together.

use super::Rejections;
use super::keywords::{
    ADDITIONAL, Additional, BRANCHES, DEFAULT, EMBEDDED, ITEMS, Keywords, LIST_MAP_KEYS, LIST_TYPE,
    MAP_TYPE, NULLABLE, PRESERVE_UNKNOWN, RULES, TYPE,
};
use crate::load::yaml::Node;

/// What the schemas around a schema say about it.
#[derive(Clone, Copy, Debug)]
struct SchemaContext<'n> {
    /// Whether it is the schema of a version.
    is_root: bool,
    /// Whether it is part of the metadata of an object.
    is_metadata: bool,
    /// Why it may have no default.
    forbids_defaults: Option<NoDefaults<'n>>,
}

#[derive(Clone, Copy, Debug)]
enum NoDefaults<'n> {
    TopLevel(&'n str),
    InMetadataMap,
}

/// The reasons that a rule of CEL can give.
const CEL_REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Checks the schema of a version.
pub(super) fn check(root: Keywords<'_>, found: &mut Rejections) {
    let context = SchemaContext {
        is_root: true,
        is_metadata: false,
        forbids_defaults: None,
    };
    check_below(root, context, found);
}

fn check_below<'n>(schema: Keywords<'n>, around: SchemaContext<'n>, found: &mut Rejections) {
    own_keywords(schema, around, found);
    map_type(schema, found);
    list_type(schema, found);
    list_map(schema, found);
    rules(schema, found);
    let inner = SchemaContext {
        is_root: false,
        ..around
    };
    if let Some(Additional::Schema(values)) = schema.additional() {
        let forbids_defaults = match around.is_metadata {
            true => Some(NoDefaults::InMetadataMap),
            false => around.forbids_defaults,
        };
        let around = SchemaContext {
            forbids_defaults,
            ..inner
        };
        check_below(values, around, found);
    }
    for entry in schema.properties() {
        let name = entry.key.name.as_str();
        let is_resource = around.is_root || schema.flag(EMBEDDED);
        let mut inner = inner;
        if is_resource && matches!(name, "metadata" | "kind" | "apiVersion") {
            inner.is_metadata = true;
            if around.is_root {
                inner.forbids_defaults = Some(NoDefaults::TopLevel(name));
            }
        }
        check_below(Keywords(&entry.value), inner, found);
    }
    for branch in BRANCHES.iter().flat_map(|key| schema.branches(key)) {
        check_below(branch, inner, found);
    }
    for schema in schema.not().into_iter().chain(schema.items()) {
        check_below(schema, inner, found);
    }
}

fn own_keywords(schema: Keywords<'_>, around: SchemaContext<'_>, found: &mut Rejections) {
    if let Some(reason) = around.forbids_defaults
        && schema.get(DEFAULT).is_some()
    {
        let reason = match reason {
            NoDefaults::TopLevel(name) => format!("in top-level {name}"),
            NoDefaults::InMetadataMap => {
                "inside additionalProperties applying to object metadata".to_owned()
            }
        };
        found.add(schema.at(DEFAULT), format!("must not be set {reason}"));
    }
    if !schema.text("id").is_empty() {
        found.add(schema.at("id"), "id is not supported");
    }
    if around.is_metadata && schema.flag(EMBEDDED) {
        found.add(
            schema.at(EMBEDDED),
            "must not be used inside of resource meta",
        );
    }
    if schema.flag("uniqueItems") {
        let reason =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.add(schema.at("uniqueItems"), reason);
    }
    let is_struct = !schema.properties().is_empty();
    let is_map = !matches!(schema.additional(), None | Some(Additional::Allowed(true)));
    if is_struct && is_map {
        let reason = "additionalProperties and properties are mutual exclusive";
        found.add(schema.at(ADDITIONAL), reason);
    }
    if schema.get(PRESERVE_UNKNOWN).and_then(Node::as_bool) == Some(false) {
        found.add(schema.at(PRESERVE_UNKNOWN), "must be true or undefined");
    }
}

fn map_type(schema: Keywords<'_>, found: &mut Rejections) {
    let Some(map_type) = schema.get(MAP_TYPE).and_then(Node::as_str) else {
        return;
    };
    if schema.kind() != "object" {
        let reason = "must be object if x-kubernetes-map-type is specified";
        found.add(schema.at(MAP_TYPE), reason);
    }
    if !matches!(map_type, "atomic" | "granular") {
        found.unsupported(schema.at(MAP_TYPE), map_type, &["atomic", "granular"]);
    }
}

fn list_type(schema: Keywords<'_>, found: &mut Rejections) {
    let keys = !schema.strings(LIST_MAP_KEYS).is_empty();
    let Some(list_type) = schema.get(LIST_TYPE).and_then(Node::as_str) else {
        if keys {
            let reason = "must be map if x-kubernetes-list-map-keys is non-empty";
            found.add(schema.at(LIST_MAP_KEYS), reason);
        }
        return;
    };
    let items = schema.items();
    if schema.kind() != "array" {
        let reason = "must be array if x-kubernetes-list-type is specified";
        found.add(schema.at(LIST_TYPE), reason);
    } else if let Some(items) = items.filter(|_| list_type == "set") {
        let is_atomic = match items.kind() {
            "array" => items.get(LIST_TYPE).is_none() || items.text(LIST_TYPE) == "atomic",
            "object" => items.text(MAP_TYPE) == "atomic",
            _ => true,
        };
        if !is_atomic {
            let reason = "must be atomic as item of a list with x-kubernetes-list-type=set";
            found.add(schema.at(LIST_TYPE), reason);
        }
    }
    if !matches!(list_type, "atomic" | "set" | "map") {
        let supported = ["atomic", "set", "map"];
        found.unsupported(schema.at(LIST_TYPE), list_type, &supported);
    }
    if keys && list_type != "map" {
        let reason = "must be map if x-kubernetes-list-map-keys is non-empty";
        found.add(schema.at(LIST_TYPE), reason);
    }
    if let Some(items) = items
        && matches!(list_type, "set" | "map")
        && items.flag(NULLABLE)
    {
        let reason = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        found.add(items.at(NULLABLE), reason);
    }
}

/// A list whose items have keys.
fn list_map(schema: Keywords<'_>, found: &mut Rejections) {
    if schema.text(LIST_TYPE) != "map" {
        return;
    }
    let keys = schema.strings(LIST_MAP_KEYS);
    if keys.is_empty() {
        let reason = "must not be empty if x-kubernetes-list-type is map";
        found.add(schema.at(LIST_TYPE), reason);
    }
    let Some(items) = schema.items() else {
        let reason = "must have a schema if x-kubernetes-list-type is map";
        if schema.get(ITEMS).is_none() {
            found.add(schema.at(LIST_TYPE), reason);
        }
        return;
    };
    if items.kind() != "object" {
        let reason = "must be object if parent array's x-kubernetes-list-type is map";
        found.add(items.at(TYPE), reason);
        return;
    }
    let required = items.strings("required");
    for (place, key) in keys.iter().enumerate() {
        if keys[..place].contains(key) {
            found.add(
                schema.at(LIST_MAP_KEYS),
                "must not contain duplicate entries",
            );
        }
        let Some(property) = items.property(key) else {
            let reason = "entries must all be names of item properties";
            found.add(schema.at(LIST_MAP_KEYS), reason);
            continue;
        };
        if matches!(property.kind(), "array" | "object") {
            let reason = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            found.add(property.at(TYPE), reason);
        }
        if !required.contains(key) && property.get(DEFAULT).is_none() {
            let reason = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            found.add(property.start(), reason);
        }
        if property.flag(NULLABLE) {
            let reason = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            found.add(property.at(NULLABLE), reason);
        }
    }
}

/// What surrounds the expressions of CEL, which are not judged.
fn rules(schema: Keywords<'_>, found: &mut Rejections) {
    for rule in schema.branches(RULES) {
        let (text, message) = (rule.text("rule").trim(), rule.text("message"));
        let has_line_breaks = |text: &str| text.contains(['\n', '\r']);
        if text.is_empty() {
            found.add(rule.start(), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            found.add(rule.at("message"), "must be non-empty if specified");
        } else if has_line_breaks(message.trim()) {
            found.add(rule.at("message"), "must not contain line breaks");
        } else if has_line_breaks(text) && message.is_empty() {
            let reason = "message must be specified if rule contains line breaks";
            found.add(rule.at("rule"), reason);
        }
        let reason = rule.get("reason").and_then(Node::as_str);
        if let Some(reason) = reason.filter(|reason| !CEL_REASONS.contains(reason)) {
            found.unsupported(rule.at("reason"), reason, &CEL_REASONS);
        }
    }
}
