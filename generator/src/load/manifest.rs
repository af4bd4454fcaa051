//! `kopf.yaml` as it is written: every value with its place, no meaning yet.
//!
//! The JSON Schema that editors use is derived from these types, so their fields are documented
//! for the person who writes the manifest.

mod coordination;
mod decode;
mod duration;
mod filter;
mod handler;
mod hook;
mod index;
mod namespaces;
mod reader;
mod select;
pub mod settings;
mod webhook;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::diagnostic::{Diagnostics, SourceId, Sources, Span};

pub use self::coordination::{
    LeaderElectionSection, PeeringOptions, PeeringSection, Standalone, Ties,
};
pub use self::duration::ManifestDuration;
pub use self::filter::{MetadataFilters, ValueFilter};
pub use self::handler::{ErrorMode, HandlerSection, InitialDelay, Trigger};
pub use self::hook::{HookKind, HookSection};
pub use self::index::IndexSection;
pub use self::select::{KindSelector, SelectSection};
pub use self::settings::{SettingValue, SettingsSection, TunedSection, kopf_only_settings};
pub use self::webhook::{AdmissionSection, ConfigurationOwner, Operation, WebhookSection};

/// The file name of the manifest.
pub const FILE_NAME: &str = "kopf.yaml";

/// The only `apiVersion` so far.
pub const API_VERSION: &str = "kopf-gen.dev/v1";

/// A value and the place where it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stood.
    pub span: Span,
}

/// One value, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum OneOrMany<T> {
    /// Written without a list.
    One(Spanned<T>),
    /// Written as a list.
    Many(#[schemars(length(min = 1))] Vec<Spanned<T>>),
}

/// The operator: its kinds and what happens to their objects.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase", title = "kopf.yaml")]
pub struct Manifest {
    /// The version of this format: `kopf-gen.dev/v1`.
    pub api_version: Spanned<ApiVersion>,
    /// The operator as a whole.
    pub operator: OperatorSection,
    /// The kinds that the operator handles.
    #[schemars(with = "Option<Vec<ResourceSection>>")]
    pub resources: Vec<ResourceSection>,
    /// The text that the spans count in.
    #[schemars(skip)]
    pub source: SourceId,
}

/// The version of the manifest format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum ApiVersion {
    /// The first version.
    #[schemars(rename = "kopf-gen.dev/v1")]
    V1,
}

/// The operator as a whole.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OperatorSection {
    /// The name of the operator: of its crate, its Deployment, its ServiceAccount.
    pub name: Spanned<String>,
    /// The namespaces that are served unless the command line says otherwise: names, or patterns
    /// such as `myapp-*,!*-pr-*`; all if left out.
    pub namespaces: Option<OneOrMany<String>>,
    /// How the operator gets along with others on the same objects.
    pub peering: Option<PeeringSection>,
    /// Run several replicas, of which one at a time acts.
    pub leader_election: Option<LeaderElectionSection>,
    /// How admission webhooks are made known to the API server.
    pub admission: Option<AdmissionSection>,
    /// Timeouts and limits of the operator.
    pub settings: Option<SettingsSection>,
    /// What happens when the operator starts, stops, and needs credentials.
    #[schemars(with = "Option<Vec<HookSection>>")]
    pub handlers: Vec<HookSection>,
}

/// A kind that the operator handles: `crd` or `builtin` names it; or those that `select` describes.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResourceSection {
    /// Where the entry stands.
    #[schemars(skip)]
    pub span: Span,
    /// The file with the CustomResourceDefinition, relative to the manifest.
    pub crd: Option<Spanned<String>>,
    /// Which kind, if the file defines several.
    pub kind: Option<Spanned<String>>,
    /// Which version of the kind is handled; the stored one if left out.
    pub version: Option<Spanned<String>>,
    /// A kind that every cluster has, such as `v1/Pod` or `batch/v1/Job`.
    pub builtin: Option<Spanned<String>>,
    /// Kinds that are not named one by one: `everything`, or `{group: …}`, `{category: …}`, `{short_name: …}`.
    pub select: Option<SelectSection>,
    /// What a selection is called in your code, such as `Toys`; made of what it selects if left out.
    #[schemars(rename = "as")]
    pub alias: Option<Spanned<String>>,
    /// What happens to the objects.
    #[schemars(with = "Option<Vec<HandlerSection>>")]
    pub handlers: Vec<HandlerSection>,
    /// The name of your own type of which one is kept in memory for each object.
    pub memo: Option<Spanned<String>>,
    /// Of which objects the last handled state is kept; of those that handlers match if left out.
    pub track: Option<Spanned<Tracking>>,
    /// What the objects are found by, in memory.
    #[schemars(with = "Option<Vec<IndexSection>>")]
    pub indices: Vec<IndexSection>,
    /// Functions that the API server asks before it stores an object.
    #[schemars(with = "Option<Vec<WebhookSection>>")]
    pub admission: Vec<WebhookSection>,
}

/// Of which objects the last handled state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Tracking {
    /// Of those that some handler of changes matches.
    Matching,
    /// Of all, so that an object that begins to match is compared with what it was before.
    Always,
}

/// Reads a manifest. Everything that is wrong is reported; `None` if it cannot be used.
#[must_use]
pub fn parse(
    sources: &Sources,
    source: SourceId,
    diagnostics: &mut Diagnostics,
) -> Option<Manifest> {
    decode::manifest(sources, source, diagnostics)
}

/// The JSON Schema of the manifest.
#[must_use]
pub fn schema() -> Schema {
    schemars::schema_for!(Manifest)
}

// === impl OneOrMany ===

impl<T> OneOrMany<T> {
    /// The values, however they were written.
    #[must_use]
    pub fn as_slice(&self) -> &[Spanned<T>] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

// === impl Spanned ===

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests;
