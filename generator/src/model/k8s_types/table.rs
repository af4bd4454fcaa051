//! The table of `k8s-openapi` structs that schemas embed, and the check whether one can hold a
//! schema.
//!
//! `table.txt` lists the fields that a struct has in every Kubernetes version that `k8s-openapi`
//! supports, because the operator chooses that version, not the generator.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::simple::{self, holds_int_or_string};
use crate::load::schema::{AdditionalProperties, Schema, SchemaType};
use crate::model::generated_types::{ExistingType, IntType, PathStep, Ty};
use crate::model::identifier::{singular, words};
use crate::model::scalar::{integer, is_int_or_string};
use crate::model::type_options::Builtins;
use crate::rust::PathRoot;

/// The crate of the structs.
const CRATE: &str = "k8s_openapi";

/// A struct of the table.
struct StructEntry {
    path: &'static str,
    /// The words of its name.
    words: Vec<String>,
    default: bool,
    fields: FxHashMap<&'static str, TableField>,
}

struct TableField {
    optional: bool,
    ty: TableType,
}

enum TableType {
    String,
    Bool,
    I32,
    I64,
    F64,
    Bytes,
    Json,
    Raw,
    Time,
    Quantity,
    IntOrString,
    Vec(Box<TableType>),
    Map(Box<TableType>),
    Struct(&'static str),
}

struct StructTable {
    entries: Vec<StructEntry>,
    by_path: FxHashMap<&'static str, usize>,
    by_field: FxHashMap<&'static str, Vec<usize>>,
}

/// The quality of a match; the smallest is the best.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct StructMatch {
    missing: usize,
    unnamed: bool,
}

/// The struct that a schema describes, if it can hold everything that the schema allows.
pub(super) fn find(
    schema: &Schema,
    steps: &[PathStep],
    builtins: Builtins,
) -> Option<ExistingType> {
    let table = table();
    let first = schema.properties.first()?;
    let candidates = table.by_field.get(first.name.as_str())?;
    let field = steps.last().map(|step| words(&singular(&step.field)));
    let field = field.unwrap_or_default();
    let mut found: Vec<(StructMatch, &StructEntry)> = candidates
        .iter()
        .map(|index| &table.entries[*index])
        .filter_map(|entry| Some((similarity(schema, &field, entry)?, entry)))
        .filter(|(_, entry)| table.fits_struct(schema, entry, builtins))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    match found.as_slice() {
        // Two structs match equally well, so it is unclear which one is meant.
        [(first, _), (second, _), ..] if first == second => None,
        [(_, entry), ..] => Some(existing(entry.path, entry.default)),
        [] => None,
    }
}

/// The struct of this path inside of `k8s_openapi`, if it is in the table.
pub(in crate::model) fn named(path: &str) -> Option<ExistingType> {
    let table = table();
    let entry = &table.entries[*table.by_path.get(path)?];
    Some(existing(entry.path, entry.default))
}

fn existing(path: &str, default: bool) -> ExistingType {
    ExistingType::external(&format!("{CRATE}::{path}"), default)
}

/// A member of a struct of `k8s-openapi`: its type and whether it is an `Option`.
pub(in crate::model) fn member(
    known: &ExistingType,
    name: &str,
) -> Result<(Ty, bool), Vec<&'static str>> {
    let table = table();
    let path = match known.rust.path().map(|path| (path.root(), path.names())) {
        Some((PathRoot::External, [first, rest @ ..])) if first == CRATE => rest.join("::"),
        _ => return Err(Vec::new()),
    };
    let index = table.by_path.get(path.as_str());
    let Some(entry) = index.map(|index| &table.entries[*index]) else {
        return Err(Vec::new());
    };
    match entry.fields.get(name) {
        Some(field) => Ok((table.ty(&field.ty), field.optional)),
        None => {
            let mut names: Vec<&str> = entry.fields.keys().copied().collect();
            names.sort_unstable();
            Err(names)
        }
    }
}

/// The quality of the match between a schema and a struct; `None` if the schema was probably not
/// made from it. The words are those of the field that has it.
fn similarity(schema: &Schema, field: &[String], entry: &StructEntry) -> Option<StructMatch> {
    let (here, there) = (schema.properties.len(), entry.fields.len());
    if here > there
        || !schema
            .properties
            .iter()
            .all(|p| entry.fields.contains_key(p.name.as_str()))
    {
        return None;
    }
    let named = !field.is_empty() && is_named_after(field, entry);
    // Newer Kubernetes versions add fields, so a schema may lack some.
    let grown = |least: usize, percent: usize| here >= least && here * 100 >= there * percent;
    let enough = if named {
        here == there || grown(3, 50)
    } else {
        (here == there && there > 2) || grown(4, 60)
    };
    enough.then_some(StructMatch {
        missing: there - here,
        unnamed: !named,
    })
}

/// Whether a field is named after a struct: `httpHeaders` after `HTTPHeader`.
fn is_named_after(field: &[String], entry: &StructEntry) -> bool {
    let name = entry.path.rsplit("::").next().unwrap_or_default();
    let has = |word: &str| field.iter().any(|w| w == word);
    match name {
        "LocalObjectReference" => has("secret") || has("ref") || has("reference"),
        "SecretReference" | "SecretKeySelector" | "SecretEnvSource" => has("secret"),
        _ => {
            let name = entry.words.as_slice();
            name.starts_with(field)
                || name.ends_with(field)
                || field.ends_with(name)
                || field.starts_with(&name[..name.len().saturating_sub(1).max(1)])
        }
    }
}

// === impl StructTable ===

impl StructTable {
    fn fits_struct(&self, schema: &Schema, entry: &StructEntry, builtins: Builtins) -> bool {
        if schema.preserve_unknown || schema.embedded_resource || schema.additional.is_some() {
            return false;
        }
        let known = schema.properties.iter().all(|property| {
            let nullable = property.schema.nullable && builtins == Builtins::Exact;
            entry
                .fields
                .get(property.name.as_str())
                .is_some_and(|field| !nullable && self.fits(&property.schema, &field.ty, builtins))
        });
        // A field without `Option` is always serialized, so the schema must require it.
        known
            && entry.fields.iter().all(|(name, field)| {
                field.optional || schema.requires(name) || zero_by_default(schema, name)
            })
    }

    fn ty(&self, ty: &TableType) -> Ty {
        match ty {
            TableType::String => Ty::String,
            TableType::Bool => Ty::Bool,
            TableType::I32 => Ty::Int(IntType::I32),
            TableType::I64 => Ty::Int(IntType::I64),
            TableType::F64 => Ty::Float,
            TableType::Bytes => simple::BYTE_STRING.ty(),
            TableType::Json => Ty::Json,
            TableType::Raw => simple::RAW_EXTENSION.ty(),
            TableType::Time => simple::TIME.ty(),
            TableType::Quantity => simple::QUANTITY.ty(),
            TableType::IntOrString => simple::INT_OR_STRING.ty(),
            TableType::Vec(inner) => Ty::Vec(Box::new(self.ty(inner))),
            TableType::Map(inner) => Ty::Map(Box::new(self.ty(inner))),
            TableType::Struct(path) => {
                let entry = self.by_path.get(path).map(|index| &self.entries[*index]);
                Ty::Existing(existing(path, entry.is_some_and(|entry| entry.default)))
            }
        }
    }

    fn fits(&self, schema: &Schema, ty: &TableType, builtins: Builtins) -> bool {
        let mixed = is_int_or_string(schema);
        let kind = if mixed { None } else { schema.kind };
        let compatible = builtins == Builtins::Compatible;
        match ty {
            TableType::String => kind == Some(SchemaType::String),
            TableType::Bool => kind == Some(SchemaType::Boolean),
            TableType::I32 => {
                kind == Some(SchemaType::Integer)
                    && matches!(integer(schema), IntType::I32 | IntType::I16 | IntType::I8)
            }
            TableType::I64 => kind == Some(SchemaType::Integer) && integer(schema) != IntType::U64,
            TableType::F64 => matches!(kind, Some(SchemaType::Number | SchemaType::Integer)),
            TableType::Bytes => {
                kind == Some(SchemaType::String) && schema.format.as_deref() == Some("byte")
            }
            TableType::Json | TableType::Raw => {
                kind == Some(SchemaType::Object) && schema.preserve_unknown
            }
            TableType::Time => {
                compatible
                    && kind == Some(SchemaType::String)
                    && schema.format.as_deref() == Some("date-time")
            }
            TableType::Quantity => kind == Some(SchemaType::String) || (compatible && mixed),
            TableType::IntOrString => mixed && holds_int_or_string(schema, builtins),
            TableType::Vec(inner) => {
                kind == Some(SchemaType::Array)
                    && schema
                        .items
                        .as_ref()
                        .is_some_and(|items| !items.nullable && self.fits(items, inner, builtins))
            }
            TableType::Map(inner) => {
                kind == Some(SchemaType::Object)
                    && schema.properties.is_empty()
                    && !schema.preserve_unknown
                    && match &schema.additional {
                        Some(AdditionalProperties::Schema(values)) => {
                            !values.nullable && self.fits(values, inner, builtins)
                        }
                        _ => false,
                    }
            }
            TableType::Struct(path) => {
                kind == Some(SchemaType::Object)
                    && self.by_path.get(path).is_some_and(|index| {
                        self.fits_struct(schema, &self.entries[*index], builtins)
                    })
            }
        }
    }
}

/// Whether the default in the schema equals the value that the struct serializes anyway.
fn zero_by_default(schema: &Schema, name: &str) -> bool {
    use serde_json::Value as Json;
    match schema
        .property(name)
        .and_then(|property| property.default.as_ref())
    {
        Some(Json::String(text)) => text.is_empty(),
        Some(Json::Number(number)) => number.as_i64() == Some(0),
        Some(Json::Bool(value)) => !value,
        Some(Json::Array(items)) => items.is_empty(),
        _ => false,
    }
}

fn table() -> &'static StructTable {
    static TABLE: OnceLock<StructTable> = OnceLock::new();
    TABLE.get_or_init(|| read(include_str!("table.txt")))
}

fn read(text: &'static str) -> StructTable {
    let mut table = StructTable {
        entries: Vec::new(),
        by_path: FxHashMap::default(),
        by_field: FxHashMap::default(),
    };
    for line in text.lines() {
        if let Some(field) = line.strip_prefix("  ") {
            let index = table.entries.len() - 1;
            let (name, ty) = field
                .split_once(' ')
                .expect("a field has a name and a type");
            let optional = name.ends_with('?');
            let name = name.trim_end_matches('?');
            let ty = field_type(ty);
            table.entries[index]
                .fields
                .insert(name, TableField { optional, ty });
            table.by_field.entry(name).or_default().push(index);
        } else {
            let (path, default) = line
                .strip_suffix(" default")
                .map_or((line, false), |p| (p, true));
            table.by_path.insert(path, table.entries.len());
            table.entries.push(StructEntry {
                path,
                words: words(path.rsplit("::").next().unwrap_or_default()),
                default,
                fields: FxHashMap::default(),
            });
        }
    }
    table
}

fn field_type(text: &'static str) -> TableType {
    let inner = &text[1..text.len() - 1];
    match text {
        "string" => TableType::String,
        "bool" => TableType::Bool,
        "i32" => TableType::I32,
        "i64" => TableType::I64,
        "f64" => TableType::F64,
        "bytes" => TableType::Bytes,
        "json" => TableType::Json,
        "raw" => TableType::Raw,
        "time" | "microtime" => TableType::Time,
        "quantity" => TableType::Quantity,
        "intorstring" => TableType::IntOrString,
        _ if text.starts_with('[') => TableType::Vec(Box::new(field_type(inner))),
        _ if text.starts_with('{') => TableType::Map(Box::new(field_type(inner))),
        path => TableType::Struct(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_struct_of_the_table_is_complete() {
        let table = table();
        assert!(table.entries.len() > 200);
        for entry in &table.entries {
            assert!(!entry.fields.is_empty(), "{}", entry.path);
        }
        assert!(table.by_path.contains_key("api::core::v1::PodTemplateSpec"));
    }
}
