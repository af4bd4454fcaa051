//! Reads `children` and `uses` of a kind: what its objects own, and what they refer to.

use schemars::JsonSchema;

use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::Span;
use crate::load::yaml::{Node, Value};

/// A kind that the objects own: its name such as `apps/v1/Deployment`, or a mapping with options.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum ChildEntry {
    /// The name of a kind alone.
    Kind(Spanned<String>),
    /// A kind with options.
    Options(Box<ChildSection>),
}

/// A kind that the objects own, with options.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["crd"], "properties": {"crd": {"type": "string"}}},
    {"required": ["kind"], "properties": {"kind": {"type": "string"}, "crd": {"type": "null"}}},
]))]
pub struct ChildSection {
    /// The place of the entry.
    #[schemars(skip)]
    pub span: Span,
    /// The kind, such as `v1/ConfigMap` or `example.com/v1/Gadget`; with `crd`, the kind to choose if the file defines several.
    pub kind: Option<Spanned<String>>,
    /// The file with the CustomResourceDefinition of the kind, relative to the manifest; its types are generated.
    pub crd: Option<Spanned<String>>,
    /// The group of the kind, if the file defines kinds of one name in several groups.
    pub group: Option<Spanned<String>>,
    /// The version of a kind with a `crd`; the stored one if left out.
    pub version: Option<Spanned<String>>,
    /// The plural of a custom kind without a `crd`, such as `gadgets`.
    pub plural: Option<Spanned<String>>,
    /// Whether the objects of a custom kind without a `crd` are in namespaces; they are if left out.
    pub scope: Option<Spanned<KindScope>>,
    /// How a child gets new values: in place if left out.
    pub update: Option<Spanned<ChildUpdate>>,
    /// Whether several children of the kind are updated one after the other, each when the one before it is ready.
    pub one_at_a_time: Option<Spanned<bool>>,
    /// Whether a child that `reconcile` no longer applies is deleted; it is if left out.
    pub prune: Option<Spanned<bool>>,
    /// Whether the operator keeps whole children in memory, instead of their metadata.
    pub bodies: Option<Spanned<bool>>,
}

/// Whether objects of a kind are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum KindScope {
    /// Each object is in a namespace.
    Namespaced,
    /// Objects are not in namespaces.
    Cluster,
}

/// How a child gets new values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum ChildUpdate {
    /// The child is changed.
    #[default]
    InPlace,
    /// The child is deleted and created again, as Jobs need it.
    Recreate,
    /// The child keeps its values until another client deletes it.
    OnDelete,
}

/// A kind that the objects refer to by name, and do not own.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UseSection {
    /// The place of the entry.
    #[schemars(skip)]
    pub span: Span,
    /// The kind, such as `v1/Secret`.
    pub kind: Spanned<String>,
    /// The field of the objects with the name, such as `spec.secretRef.name`; `[]` is each item of a list, as in `spec.secrets[].name`.
    pub by: Spanned<String>,
    /// The field with the namespace; the namespace of the object if left out.
    pub namespace: Option<Spanned<String>>,
    /// The plural of a custom kind, such as `gadgets`.
    pub plural: Option<Spanned<String>>,
    /// Whether the objects of a custom kind are in namespaces; they are if left out.
    pub scope: Option<Spanned<KindScope>>,
}

const UPDATES: &[(&str, ChildUpdate)] = &[
    ("in-place", ChildUpdate::InPlace),
    ("recreate", ChildUpdate::Recreate),
    ("on-delete", ChildUpdate::OnDelete),
];

const SCOPES: &[(&str, KindScope)] = &[
    ("Namespaced", KindScope::Namespaced),
    ("Cluster", KindScope::Cluster),
];

// === impl ChildEntry ===

impl ChildEntry {
    /// The entry with its options.
    #[must_use]
    pub fn section(&self) -> ChildSection {
        match self {
            Self::Kind(kind) => ChildSection {
                span: kind.span,
                kind: Some(kind.clone()),
                ..ChildSection::default()
            },
            Self::Options(section) => (**section).clone(),
        }
    }

    /// The file with the definition of the kind.
    #[must_use]
    pub fn crd(&self) -> Option<&Spanned<String>> {
        match self {
            Self::Kind(_) => None,
            Self::Options(section) => section.crd.as_ref(),
        }
    }
}

impl ManifestReader<'_> {
    pub(super) fn child(&mut self, node: &Node) -> Option<ChildEntry> {
        if !matches!(node.value, Value::Map(_)) {
            return self.string(node, "a child").map(ChildEntry::Kind);
        }
        let mut fields = self.fields(node, "a child")?;
        let crd = self.optional_string(&mut fields, "crd");
        if fields.optional("crd").is_none() {
            fields.required_unless("kind", &["crd"]);
        }
        let section = ChildSection {
            span: fields.place(),
            kind: self.optional_string(&mut fields, "kind"),
            group: self.optional_string(&mut fields, "group"),
            version: self.optional_string(&mut fields, "version"),
            plural: self.optional_string(&mut fields, "plural"),
            scope: fields
                .optional("scope")
                .and_then(|node| self.word(node, "`scope`", SCOPES)),
            update: fields
                .optional("update")
                .and_then(|node| self.word(node, "`update`", UPDATES)),
            one_at_a_time: self.boolean(&mut fields, "one_at_a_time"),
            prune: self.boolean(&mut fields, "prune"),
            bodies: self.boolean(&mut fields, "bodies"),
            crd,
        };
        fields.finish(self);
        let is_named = section.crd.is_some() || section.kind.is_some();
        is_named.then(|| ChildEntry::Options(Box::new(section)))
    }

    pub(super) fn used(&mut self, node: &Node) -> Option<UseSection> {
        let mut fields = self.fields(node, "an entry of `uses`")?;
        let span = fields.place();
        let kind = fields
            .required("kind")
            .and_then(|node| self.string(node, "`kind`"));
        let by = fields
            .required("by")
            .and_then(|node| self.string(node, "`by`"));
        let namespace = self.optional_string(&mut fields, "namespace");
        let plural = self.optional_string(&mut fields, "plural");
        let scope = fields
            .optional("scope")
            .and_then(|node| self.word(node, "`scope`", SCOPES));
        fields.finish(self);
        Some(UseSection {
            span,
            kind: kind?,
            by: by?,
            namespace,
            plural,
            scope,
        })
    }
}
