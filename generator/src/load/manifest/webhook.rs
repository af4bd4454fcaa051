//! Reads `admission` of a kind and of the operator.

use schemars::JsonSchema;

use super::duration::ManifestDuration;
use super::filter::{Conditions, MetadataFilters, PredicateName, ValueFilter};
use super::reader::ManifestReader;
use super::spanned::{OneOrMany, Spanned};
use crate::diagnostic::Span;
use crate::load::yaml::Node;

/// The registration of admission webhooks with the API server.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AdmissionSection {
    /// The name of the webhook configurations; `<operator>.kopf-gen.dev` if left out.
    pub name: Option<Spanned<String>>,
    /// The writer of the webhook configurations; the operator if left out.
    pub configuration: Option<Spanned<ConfigurationOwner>>,
}

/// The writer of the webhook configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum ConfigurationOwner {
    /// The operator itself, while it runs.
    #[default]
    Managed,
    /// You, by applying `deploy/base/webhooks.yaml`; cert-manager issues the certificates.
    CertManager,
}

/// A function that the API server calls before it stores an object; either `validate` or `mutate`
/// names it.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "snake_case")]
pub struct WebhookSection {
    /// The place of the entry.
    #[schemars(skip)]
    pub span: Span,
    /// The name of a function that admits or denies a request.
    pub validate: Option<Spanned<String>>,
    /// The name of a function that may also change the object.
    pub mutate: Option<Spanned<String>>,
    /// The id of the webhook; the name of the function if left out.
    pub id: Option<Spanned<String>>,
    /// The operations that call the webhook; all if left out.
    pub operations: Option<OneOrMany<Operation>>,
    /// A subresource such as `status` or `scale`, or `"*"` for all of them and the object itself.
    pub subresource: Option<Spanned<String>>,
    /// Whether the function has side effects, except in a dry run.
    pub side_effects: Option<Spanned<bool>>,
    /// Whether the API server admits requests if the webhook cannot be called or fails without denying.
    pub ignore_failures: Option<Spanned<bool>>,
    /// Whether the webhook configuration stays when the operator stops, so that no request bypasses it.
    pub persistent: Option<Spanned<bool>>,
    /// How long the API server waits for it, from 1s to 30s.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// The field that the function checks, such as `spec.size`.
    pub field: Option<Spanned<String>>,
    /// Only objects whose field has this value: `present`, `absent`, `{predicate: name}`, the value itself, or `{any: [a, b]}`, `all`, `none`, `not` of these.
    pub value: Option<Conditions<ValueFilter>>,
    /// Only changes from this value of the field.
    pub old: Option<Conditions<ValueFilter>>,
    /// Only changes to this value of the field.
    pub new: Option<Conditions<ValueFilter>>,
    /// Only objects with these labels: `present`, `absent`, `{predicate: name}`, the value itself, or `{any: [a, b]}`, `all`, `none`, `not` of these.
    pub labels: Option<MetadataFilters>,
    /// Only objects with these annotations, as for labels.
    pub annotations: Option<MetadataFilters>,
    /// The name of a function that decides whether this one is called.
    pub when: Option<Conditions<PredicateName>>,
    /// Any value for the function; it is the same in every call.
    pub param: Option<Spanned<serde_json::Value>>,
}

/// The operation of an admission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is being created.
    Create,
    /// The object is being changed.
    Update,
    /// The object is being deleted.
    Delete,
    /// A client connects to the object, as `kubectl exec` does.
    Connect,
}

const CONFIGURATIONS: &[(&str, ConfigurationOwner)] = &[
    ("managed", ConfigurationOwner::Managed),
    ("cert-manager", ConfigurationOwner::CertManager),
];

// === impl WebhookSection ===

impl WebhookSection {
    /// The name of the function.
    #[must_use]
    pub fn function(&self) -> Option<&Spanned<String>> {
        self.validate.as_ref().or(self.mutate.as_ref())
    }
}

// === impl Operation ===

impl Operation {
    /// All operations with their words in the manifest.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("CREATE", Self::Create),
        ("UPDATE", Self::Update),
        ("DELETE", Self::Delete),
        ("CONNECT", Self::Connect),
    ];
}

impl ManifestReader<'_> {
    pub(super) fn admission(&mut self, node: &Node) -> Option<AdmissionSection> {
        let mut fields = self.fields(node, "`admission`")?;
        let section = AdmissionSection {
            name: self.optional_string(&mut fields, "name"),
            configuration: fields
                .optional("configuration")
                .and_then(|node| self.word(node, "`configuration`", CONFIGURATIONS)),
        };
        fields.finish(self);
        Some(section)
    }

    pub(super) fn webhook(&mut self, node: &Node) -> Option<WebhookSection> {
        let mut fields = self.fields(node, "a webhook")?;
        let section = WebhookSection {
            span: fields.place(),
            validate: self.optional_string(&mut fields, "validate"),
            mutate: self.optional_string(&mut fields, "mutate"),
            id: self.optional_string(&mut fields, "id"),
            operations: fields.optional("operations").and_then(|node| {
                self.one_or_many(node, |this, node| {
                    this.word(node, "`operations`", Operation::NAMES)
                })
            }),
            subresource: self.optional_string(&mut fields, "subresource"),
            side_effects: self.boolean(&mut fields, "side_effects"),
            ignore_failures: self.boolean(&mut fields, "ignore_failures"),
            persistent: self.boolean(&mut fields, "persistent"),
            timeout: self.duration(&mut fields, "timeout"),
            field: self.optional_string(&mut fields, "field"),
            value: self.value_filter(&mut fields, "value"),
            old: self.value_filter(&mut fields, "old"),
            new: self.value_filter(&mut fields, "new"),
            labels: self.filters(&mut fields, "labels"),
            annotations: self.filters(&mut fields, "annotations"),
            when: self.when(&mut fields),
            param: fields.optional("param").map(|node| Spanned {
                value: node.to_json(),
                span: node.span,
            }),
        };
        fields.finish(self);
        Some(section)
    }
}
