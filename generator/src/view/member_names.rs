//! The Rust names of struct fields and enum variants.

use std::collections::BTreeSet;

use super::serde_rename::RenameRule;
use crate::model::generated_types::{ShapeBody, StructField};
use crate::model::identifier::{RustIdent, TypeName, variants};

/// The names of the fields; a field that needs no rename gets its name first.
pub(super) fn idents(fields: &[StructField], taken: &mut BTreeSet<RustIdent>) -> Vec<RustIdent> {
    let mut list: Vec<Option<RustIdent>> = vec![None; fields.len()];
    for (slot, field) in list.iter_mut().zip(fields) {
        let ident = RustIdent::new(&field.json);
        let natural =
            RenameRule::Camel.field(ident.bare()) == field.json || ident.bare() == field.json;
        if natural && taken.insert(ident.clone()) {
            *slot = Some(ident);
        }
    }
    list.into_iter()
        .zip(fields)
        .map(|(slot, field)| slot.unwrap_or_else(|| RustIdent::unique(&field.json, taken)))
        .collect()
}

/// The names of the variants of an enum of strings or integers.
pub(super) fn variant_names(body: &ShapeBody) -> Vec<TypeName> {
    match body {
        ShapeBody::StringEnum(values) => {
            variants(&values.iter().map(String::as_str).collect::<Vec<_>>())
        }
        ShapeBody::IntEnum(values) => {
            let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
            variants(&texts.iter().map(String::as_str).collect::<Vec<_>>())
        }
        _ => Vec::new(),
    }
}
