//! Reads YAML and JSON texts into trees of nodes with spans, in the order of the text.

mod build;
mod json;
mod node;
mod parser_input;
mod scalar;

use crate::diagnostic::{Diagnostics, SourceId, Sources};

pub use self::node::{Dialect, MapEntry, MapKey, Node, Value};

/// Reads all documents of a text; after a syntax error, the documents before it.
#[must_use]
pub fn parse(
    sources: &Sources,
    source: SourceId,
    dialect: Dialect,
    diagnostics: &mut Diagnostics,
) -> Vec<Node> {
    let text = sources.text(source);
    match json::document(text) {
        Some(document) => vec![document],
        None => build::documents(text, source, dialect, diagnostics),
    }
}

#[cfg(test)]
mod tests;
