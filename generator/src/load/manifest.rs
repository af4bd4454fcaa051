//! `kopf.yaml` as it is written: every value with its place, no meaning yet.
//!
//! The JSON Schema that editors use is derived from these types, so their fields are documented
//! for the person who writes the manifest.

mod decode;
mod duration;
mod fields;
mod hooks;
mod peers;
mod scope;
mod select;
pub mod settings;

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::diagnostic::{Diagnostics, SourceId, Sources, Span};

pub use self::hooks::{HookSection, Moment};
pub use self::peers::{LeaderElectionSection, PeeringOptions, PeeringSection, Standalone, Ties};
pub use self::select::{Likeness, SelectSection};
pub use self::settings::{SettingValue, SettingsSection, TunedSection, foreign};

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

/// How admission webhooks are made known to the API server.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AdmissionSection {
    /// The name of the webhook configurations; `<operator>.kopf-gen.dev` if left out.
    pub name: Option<Spanned<String>>,
    /// Who writes the webhook configurations; the operator if left out.
    pub configuration: Option<Spanned<Configuration>>,
}

/// Who writes the webhook configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Configuration {
    /// The operator itself, while it runs.
    #[default]
    Managed,
    /// Whoever applies `deploy/webhooks.yaml`, with certificates by cert-manager.
    CertManager,
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

/// An index: objects, or what a function makes of them, found by a key.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "snake_case")]
pub struct IndexSection {
    /// Where the entry stands.
    #[schemars(skip)]
    pub span: Span,
    /// The name of the index, and of the function that says by which keys an object is found.
    pub index: Spanned<String>,
    /// The Rust type of the keys, such as `"(String, String)"`; `String` if left out.
    pub keys: Option<Spanned<String>>,
    /// The Rust type of what is found, such as `crate::handlers::PodInfo`; `String` if left out.
    pub values: Option<Spanned<String>>,
    /// Only objects that have this field, such as `spec.nodeName`.
    pub field: Option<Spanned<String>>,
    /// Only objects whose field has this value: `present`, `absent`, `{predicate: name}`, or the value itself.
    pub value: Option<Spanned<ValueFilter>>,
    /// Only objects with these labels: `present`, `absent`, `{predicate: name}`, or the value itself.
    pub labels: Option<Filters>,
    /// Only objects with these annotations, as for labels.
    pub annotations: Option<Filters>,
    /// The name of a function that decides whether an object is looked at.
    pub when: Option<Spanned<String>>,
    /// Anything that the function wants to be told; it is the same for every call.
    pub param: Option<Spanned<serde_json::Value>>,
    /// What an error means that says nothing itself about retrying: `ignored` if left out.
    pub errors: Option<Spanned<ErrorMode>>,
    /// How long to keep trying, from the first failure.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// How many attempts are made in a row.
    #[schemars(range(max = 4_294_967_295u32))]
    pub retries: Option<Spanned<u32>>,
    /// How long to wait before the next attempt.
    pub backoff: Option<Spanned<ManifestDuration>>,
}

/// A function that the API server asks before it stores an object; either `validate` or `mutate`
/// names it.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "snake_case")]
pub struct WebhookSection {
    /// Where the entry stands.
    #[schemars(skip)]
    pub span: Span,
    /// The name of a function that says whether a request may pass.
    pub validate: Option<Spanned<String>>,
    /// The name of a function that may also change the object.
    pub mutate: Option<Spanned<String>>,
    /// The id under which the webhook is known; the name of the function if left out.
    pub id: Option<Spanned<String>>,
    /// What it is asked about; everything if left out.
    pub operations: Option<OneOrMany<Operation>>,
    /// A subresource such as `status` or `scale`, or `"*"` for all of them and the object itself.
    pub subresource: Option<Spanned<String>>,
    /// Whether the function does more than answering, except in a dry run.
    pub side_effects: Option<Spanned<bool>>,
    /// Whether requests pass when the function cannot be asked, or fails other than by a denial.
    pub ignore_failures: Option<Spanned<bool>>,
    /// Whether the webhook stays when the operator stops, so that nothing passes unseen.
    pub persistent: Option<Spanned<bool>>,
    /// How long the API server waits for it, from 1s to 30s.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// The field that the function is about, such as `spec.size`.
    pub field: Option<Spanned<String>>,
    /// Only objects whose field has this value: `present`, `absent`, `{predicate: name}`, or the value itself.
    pub value: Option<Spanned<ValueFilter>>,
    /// Only changes from this value of the field.
    pub old: Option<Spanned<ValueFilter>>,
    /// Only changes to this value of the field.
    pub new: Option<Spanned<ValueFilter>>,
    /// Only objects with these labels: `present`, `absent`, `{predicate: name}`, or the value itself.
    pub labels: Option<Filters>,
    /// Only objects with these annotations, as for labels.
    pub annotations: Option<Filters>,
    /// The name of a function that decides whether this one is asked.
    pub when: Option<Spanned<String>>,
    /// Anything that the function wants to be told; it is the same for every call.
    pub param: Option<Spanned<serde_json::Value>>,
}

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is being created.
    Create,
    /// It is being changed.
    Update,
    /// It is being deleted.
    Delete,
    /// Somebody connects to it, as `kubectl exec` does.
    Connect,
}

/// A function that is called for objects of the kind: with `on` and `fn` for what happens to them,
/// as a `timer` from time to time, as a `daemon` as long as they are there.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "snake_case")]
#[schemars(extend("oneOf" = [
    {
        "required": ["on", "fn"],
        "properties": {"on": {"not": {"type": "null"}}, "fn": {"type": "string"}, "timer": {"type": "null"}, "daemon": {"type": "null"}},
    },
    {
        "required": ["timer"],
        "properties": {"timer": {"type": "string"}, "on": {"type": "null"}, "fn": {"type": "null"}, "daemon": {"type": "null"}},
    },
    {
        "required": ["daemon"],
        "properties": {"daemon": {"type": "string"}, "on": {"type": "null"}, "fn": {"type": "null"}, "timer": {"type": "null"}},
    },
]))]
pub struct HandlerSection {
    /// Where the entry stands.
    #[schemars(skip)]
    pub span: Span,
    /// When the function is called; timers and daemons have none.
    pub on: Option<OneOrMany<Trigger>>,
    /// The name of the function; of a timer or daemon, what follows the word.
    #[schemars(rename = "fn", with = "Option<String>")]
    pub function: Spanned<String>,
    /// The name of a function that is called from time to time.
    pub timer: Option<Spanned<String>>,
    /// The name of a function that runs as long as the object is there.
    pub daemon: Option<Spanned<String>>,
    /// The id under which progress is kept on the object; the name of the function if left out.
    pub id: Option<Spanned<String>>,
    /// The field, or the fields, that the handler is about, such as `spec.size`.
    pub field: Option<OneOrMany<String>>,
    /// Only objects whose field has this value: `present`, `absent`, `{predicate: name}`, or the value itself.
    pub value: Option<Spanned<ValueFilter>>,
    /// Only changes from this value of the field.
    pub old: Option<Spanned<ValueFilter>>,
    /// Only changes to this value of the field.
    pub new: Option<Spanned<ValueFilter>>,
    /// Only objects with these labels: `present`, `absent`, `{predicate: name}`, or the value itself.
    pub labels: Option<Filters>,
    /// Only objects with these annotations, as for labels.
    pub annotations: Option<Filters>,
    /// The name of a function that decides whether the handler is called.
    pub when: Option<Spanned<String>>,
    /// Anything that the function wants to be told; it is the same for every call.
    pub param: Option<Spanned<serde_json::Value>>,
    /// What an error means that says nothing itself about retrying.
    pub errors: Option<Spanned<ErrorMode>>,
    /// How long to keep trying, from the first attempt.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// How many attempts are made.
    #[schemars(range(max = 4_294_967_295u32))]
    pub retries: Option<Spanned<u32>>,
    /// How long to wait before the next attempt.
    pub backoff: Option<Spanned<ManifestDuration>>,
    /// Whether deletion may go ahead without this delete handler.
    pub optional: Option<Spanned<bool>>,
    /// Whether this resume handler is also called for objects that are being deleted.
    pub deleted: Option<Spanned<bool>>,
    /// How long a timer pauses after a call.
    pub interval: Option<Spanned<ManifestDuration>>,
    /// Whether the interval of a timer is counted from call to call, however long they take.
    pub sharp: Option<Spanned<bool>>,
    /// How long an object must have been unchanged for a timer to be called.
    pub idle: Option<Spanned<ManifestDuration>>,
    /// How long a timer or daemon waits at first: a duration, or `{fn: name}` of a function that tells.
    pub initial_delay: Option<Spanned<InitialDelay>>,
    /// How long a daemon may take to stop by itself, before it is interrupted.
    pub cancellation_backoff: Option<Spanned<ManifestDuration>>,
    /// How long a daemon may take to be gone when interrupted; without it, it is waited for.
    pub cancellation_timeout: Option<Spanned<ManifestDuration>>,
    /// How often it is told that a daemon is still waited for.
    pub cancellation_polling: Option<Spanned<ManifestDuration>>,
}

/// When a handler is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Trigger {
    /// An object was created.
    Create,
    /// An object was changed.
    Update,
    /// An object is being deleted.
    Delete,
    /// The operator started and found the object.
    Resume,
    /// A field was added, changed or removed.
    Field,
    /// Anything at all was seen of the object.
    Event,
}

/// What an error means that says nothing itself about retrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum ErrorMode {
    /// The handler has succeeded all the same.
    Ignored,
    /// The handler is tried again.
    Temporary,
    /// The handler has failed for good.
    Permanent,
}

/// Labels or annotations, each with what is wanted of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// The filters in the order of the text.
    pub list: Vec<(Spanned<String>, Spanned<ValueFilter>)>,
}

/// What is wanted of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueFilter {
    /// It is there, whatever it is.
    Present,
    /// It is not there.
    Absent,
    /// It is this.
    Equals(serde_json::Value),
    /// A function of this name says yes.
    Predicate(Spanned<String>),
}

/// How long a timer or daemon waits before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialDelay {
    /// Always as long.
    Fixed(ManifestDuration),
    /// As long as a function of this name says.
    Computed(Spanned<String>),
}

/// A duration as people write it: `30s`, `1h30m`, or a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestDuration(pub Duration);

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

// === impl HandlerSection ===

impl HandlerSection {
    /// Where a predicate or another callback of this name is named.
    #[must_use]
    pub fn predicate_span(&self, name: &str) -> Option<Span> {
        let listed = [&self.labels, &self.annotations].into_iter().flatten();
        let filters = listed
            .flat_map(|filters| &filters.list)
            .map(|(_, filter)| &filter.value);
        let values = [&self.value, &self.old, &self.new]
            .into_iter()
            .flatten()
            .map(|it| &it.value);
        let predicates = filters.chain(values).filter_map(|filter| match filter {
            ValueFilter::Predicate(name) => Some(name),
            _ => None,
        });
        let same = |it: &&Spanned<String>| it.value == name.strip_prefix("r#").unwrap_or(name);
        let delay = self.initial_delay.iter().filter_map(|it| match &it.value {
            InitialDelay::Computed(name) => Some(name),
            InitialDelay::Fixed(_) => None,
        });
        self.when
            .iter()
            .chain(delay)
            .chain(predicates)
            .find(same)
            .map(|it| it.span)
    }
}

// === impl WebhookSection ===

impl WebhookSection {
    /// The name of the function, whatever it does.
    #[must_use]
    pub fn function(&self) -> Option<&Spanned<String>> {
        self.validate.as_ref().or(self.mutate.as_ref())
    }
}

// === impl ErrorMode ===

impl ErrorMode {
    /// All modes with the words for them.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("ignored", Self::Ignored),
        ("temporary", Self::Temporary),
        ("permanent", Self::Permanent),
    ];
}

// === impl Operation ===

impl Operation {
    /// All operations with the words for them.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("CREATE", Self::Create),
        ("UPDATE", Self::Update),
        ("DELETE", Self::Delete),
        ("CONNECT", Self::Connect),
    ];
}

// === impl Trigger ===

impl Trigger {
    /// All triggers with the words for them.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("create", Self::Create),
        ("update", Self::Update),
        ("delete", Self::Delete),
        ("resume", Self::Resume),
        ("field", Self::Field),
        ("event", Self::Event),
    ];
}

// === schemas of the types that are not derived ===

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

impl JsonSchema for Filters {
    fn schema_name() -> Cow<'static, str> {
        "Filters".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let predicate = predicate_schema(generator);
        json_schema!({
            "type": "object",
            "additionalProperties": {"anyOf": [
                {"type": "string"},
                {"type": "object", "additionalProperties": false, "required": ["value"], "properties": {"value": {"type": "string"}}},
                predicate,
            ]},
        })
    }
}

impl JsonSchema for ValueFilter {
    fn schema_name() -> Cow<'static, str> {
        "ValueFilter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let predicate = predicate_schema(generator);
        json_schema!({"anyOf": [
            {"type": ["string", "number", "boolean"]},
            {"type": "object", "additionalProperties": false, "required": ["value"], "properties": {"value": {"not": {"type": "null"}}}},
            predicate,
        ]})
    }
}

impl JsonSchema for ManifestDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "number", "minimum": 0, "maximum": duration::LONGEST_SECONDS},
            {"type": "string", "pattern": duration::PATTERN},
        ]})
    }
}

impl JsonSchema for InitialDelay {
    fn schema_name() -> Cow<'static, str> {
        "InitialDelay".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fixed = generator.subschema_for::<ManifestDuration>();
        json_schema!({"anyOf": [
            fixed,
            {"type": "object", "additionalProperties": false, "required": ["fn"], "properties": {"fn": {"type": "string"}}},
        ]})
    }
}

fn predicate_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "required": ["predicate"],
        "properties": {"predicate": {"type": "string"}},
    })
}

#[cfg(test)]
mod tests;
