//! `src/generated/indices.rs`: one type for each index.

use askama::Template;

use super::layout::wrap;
use super::literal;
use super::phrases::object;
use crate::model::index::Index;
use crate::model::operator::Operator;

/// The width of a doc comment at the top level.
const DOC_WIDTH: usize = 96;

/// The module of all indices.
#[derive(Debug, Template)]
#[template(path = "generated/indices.rs")]
pub struct IndicesView<'a> {
    indices: Vec<IndexLines<'a>>,
}

#[derive(Debug)]
struct IndexLines<'a> {
    doc: Vec<String>,
    type_name: &'a str,
    keys: &'a str,
    values: &'a str,
    /// The name, as a literal.
    name: String,
}

impl<'a> IndicesView<'a> {
    /// All indices of `operator`; `None` if it has none.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Option<Self> {
        let lines = |index: &'a Index| IndexLines {
            doc: wrap(&sentence(operator, index), DOC_WIDTH),
            type_name: &index.type_name,
            keys: &index.keys.resolved,
            values: &index.values.resolved,
            name: literal::string(&index.name),
        };
        let indices: Vec<_> = operator.indices().into_iter().map(lines).collect();
        (!indices.is_empty()).then_some(Self { indices })
    }
}

fn sentence(operator: &Operator, index: &Index) -> String {
    let kinds: Vec<String> = operator
        .kinds
        .iter()
        .filter(|kind| kind.indices().any(|it| it.name == index.name))
        .map(object)
        .collect();
    format!(
        "The index `{}` of {}: keys are `{}`, values are `{}`.",
        index.name,
        kinds.join(" or "),
        index.keys.written,
        index.values.written
    )
}
