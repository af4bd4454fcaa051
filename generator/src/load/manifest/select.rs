//! Reads `select`: kinds by group, category, short name and the like.

use schemars::JsonSchema;

use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::Span;
use crate::load::yaml::Value;

/// The kinds of the cluster to handle: `everything`, or a selector.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum SelectSection {
    /// All kinds.
    Everything(Spanned<Everything>),
    /// The kinds that the selector matches.
    Selector(Box<KindSelector>),
}

/// The word for all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Everything {
    /// All kinds, except Events.
    Everything,
}

/// Selects kinds by one of the names; by the group alone, all kinds of the group.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KindSelector {
    /// Its place in the text.
    #[schemars(skip)]
    pub span: Span,
    /// The API group, such as `apps`; `""` for the core group, any if left out.
    pub group: Option<Spanned<String>>,
    /// The version, such as `v1`; the one that the server prefers if left out.
    pub version: Option<Spanned<String>>,
    /// The kind, such as `Pod`.
    pub kind: Option<Spanned<String>>,
    /// The plural, such as `pods`.
    pub plural: Option<Spanned<String>>,
    /// The singular, such as `pod`.
    pub singular: Option<Spanned<String>>,
    /// The short name, such as `po`.
    pub short_name: Option<Spanned<String>>,
    /// Any of these four.
    pub any_name: Option<Spanned<String>>,
    /// A category, such as `all`, with all its kinds.
    pub category: Option<Spanned<String>>,
}

const EVERYTHING: &[(&str, Everything)] = &[("everything", Everything::Everything)];

// === impl SelectSection ===

impl SelectSection {
    /// Its place in the text.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Self::Everything(word) => word.span,
            Self::Selector(selector) => selector.span,
        }
    }
}

impl ManifestReader<'_> {
    pub(super) fn select(&mut self, fields: &mut MappingFields<'_>) -> Option<SelectSection> {
        let node = fields.optional("select")?;
        if !matches!(node.value, Value::Map(_)) {
            let word = self.word(node, "`select`", EVERYTHING)?;
            return Some(SelectSection::Everything(word));
        }
        let mut inner = self.fields(node, "`select`")?;
        let selector = KindSelector {
            span: inner.place(),
            group: self.optional_string(&mut inner, "group"),
            version: self.optional_string(&mut inner, "version"),
            kind: self.optional_string(&mut inner, "kind"),
            plural: self.optional_string(&mut inner, "plural"),
            singular: self.optional_string(&mut inner, "singular"),
            short_name: self.optional_string(&mut inner, "short_name"),
            any_name: self.optional_string(&mut inner, "any_name"),
            category: self.optional_string(&mut inner, "category"),
        };
        inner.finish(self);
        Some(SelectSection::Selector(Box::new(selector)))
    }
}
