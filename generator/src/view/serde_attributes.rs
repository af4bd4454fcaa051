//! `#[serde(…)]` attributes, laid out as rustfmt does.

use super::serde_rename::{self, RenameRule};
use crate::model::generated_types::StructShape;
use crate::model::identifier::RustIdent;

/// The widest list of arguments that rustfmt leaves on one line of an attribute.
const ATTRIBUTE_WIDTH: usize = 70;

pub(super) fn rule(body: &StructShape, idents: &[RustIdent]) -> RenameRule {
    serde_rename::for_fields(
        &idents
            .iter()
            .map(RustIdent::bare)
            .zip(body.fields.iter().map(|f| f.json.as_str())),
    )
}

pub(super) fn container(rule: RenameRule) -> Vec<String> {
    rule.name()
        .map(|name| format!("rename_all = {name:?}"))
        .into_iter()
        .collect()
}

/// A serde attribute as rustfmt lays it out; none without arguments.
pub(super) fn serde_lines(arguments: &[String]) -> Vec<String> {
    if arguments.is_empty() {
        return Vec::new();
    }
    let line = arguments.join(", ");
    if line.len() <= ATTRIBUTE_WIDTH {
        return vec![format!("#[serde({line})]")];
    }
    let mut lines = vec!["#[serde(".to_owned()];
    for (index, argument) in arguments.iter().enumerate() {
        let comma = if index + 1 < arguments.len() { "," } else { "" };
        lines.push(format!("    {argument}{comma}"));
    }
    lines.push(")]".to_owned());
    lines
}
