//! Reads `indices` of a kind.

use schemars::JsonSchema;

use super::duration::ManifestDuration;
use super::filter::{Conditions, MetadataFilters, PredicateName, ValueFilter};
use super::handler::ErrorMode;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::Span;
use crate::load::yaml::Node;

/// An index: finds objects, or values that a function computes from them, by keys.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "snake_case")]
pub struct IndexSection {
    /// The place of the entry.
    #[schemars(skip)]
    pub span: Span,
    /// The name of the index, and of the function that returns the keys of an object.
    pub index: Spanned<String>,
    /// The Rust type of the keys, such as `"(String, String)"`; `String` if left out.
    pub keys: Option<Spanned<String>>,
    /// The Rust type of the values, such as `crate::handlers::PodInfo`; `String` if left out.
    pub values: Option<Spanned<String>>,
    /// Only objects that have this field, such as `spec.nodeName`.
    pub field: Option<Spanned<String>>,
    /// Only objects whose field has this value: `present`, `absent`, `{predicate: name}`, the value itself, or `{any: [a, b]}`, `all`, `none`, `not` of these.
    pub value: Option<Conditions<ValueFilter>>,
    /// Only objects with these labels: `present`, `absent`, `{predicate: name}`, the value itself, or `{any: [a, b]}`, `all`, `none`, `not` of these.
    pub labels: Option<MetadataFilters>,
    /// Only objects with these annotations, as for labels.
    pub annotations: Option<MetadataFilters>,
    /// The name of a function that decides whether an object is indexed.
    pub when: Option<Conditions<PredicateName>>,
    /// Any value for the function; it is the same in every call.
    pub param: Option<Spanned<serde_json::Value>>,
    /// The meaning of an error that is neither temporary nor permanent by itself; `ignored` if left out.
    pub errors: Option<Spanned<ErrorMode>>,
    /// The time limit for all attempts, from the first failure.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// The number of attempts in a row.
    #[schemars(range(max = 4_294_967_295u32))]
    pub retries: Option<Spanned<u32>>,
    /// The pause before the next attempt.
    pub backoff: Option<Spanned<ManifestDuration>>,
}

impl ManifestReader<'_> {
    pub(super) fn index(&mut self, node: &Node) -> Option<IndexSection> {
        let mut fields = self.fields(node, "an index")?;
        let span = fields.place();
        let index = fields
            .required("index")
            .and_then(|node| self.string(node, "`index`"));
        let keys = self.optional_string(&mut fields, "keys");
        let values = self.optional_string(&mut fields, "values");
        let field = self.optional_string(&mut fields, "field");
        let value = self.value_filter(&mut fields, "value");
        let labels = self.filters(&mut fields, "labels");
        let annotations = self.filters(&mut fields, "annotations");
        let when = self.when(&mut fields);
        let param = fields.optional("param").map(|node| Spanned {
            value: node.to_json(),
            span: node.span,
        });
        let errors = fields
            .optional("errors")
            .and_then(|node| self.word(node, "`errors`", ErrorMode::NAMES));
        let timeout = self.duration(&mut fields, "timeout");
        let retries = self.count(&mut fields, "retries");
        let backoff = self.duration(&mut fields, "backoff");
        fields.finish(self);
        Some(IndexSection {
            span,
            index: index?,
            keys,
            values,
            field,
            value,
            labels,
            annotations,
            when,
            param,
            errors,
            timeout,
            retries,
            backoff,
        })
    }
}
