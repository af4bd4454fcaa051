//! The declaration of a memo's type in the user's file.

use super::layout::{empty_impl, wrap};
use super::stub::NameStyle;
use crate::model::operator::{HandledKind, MEMO_TYPE};
use crate::model::phrases::object;
use crate::rust::RustType;

/// The width of a doc comment at the top level.
const DOC_WIDTH: usize = 96;

/// The type and its `impl Memo`, as lines without a final empty one.
pub(super) fn declaration(kind: &HandledKind, names: NameStyle<'_>) -> Vec<String> {
    let Some(name) = &kind.memo else {
        return Vec::new();
    };
    let doc = format!(
        "The in-memory state of {} while the operator runs; its handlers share it.",
        object(kind)
    );
    let doc = wrap(&doc, DOC_WIDTH);
    let doc = doc.into_iter().map(|line| format!("/// {line}"));
    let object = names.ty(&RustType::named(kind.object_path()));
    let memo = names.prelude(MEMO_TYPE);
    doc.chain([
        "#[derive(Debug, Default)]".to_owned(),
        format!("pub struct {name} {{}}"),
        String::new(),
    ])
    .chain(empty_impl(&format!("{memo}<{object}>"), name))
    .collect()
}

/// The associated type in the `impl` of the kind's trait, without indentation.
pub(super) fn association(kind: &HandledKind) -> Option<String> {
    let name = kind.memo.as_ref()?;
    Some(format!("type {MEMO_TYPE} = {name};"))
}

/// The associated type, indented for a new file.
pub(super) fn in_impl(kind: &HandledKind) -> Option<String> {
    let gap = if kind.handlers.is_empty() && kind.webhooks.is_empty() {
        ""
    } else {
        "\n"
    };
    Some(format!("    {}{gap}", association(kind)?))
}
