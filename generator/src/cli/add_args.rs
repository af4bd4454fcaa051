//! The arguments of `kopf-gen add` for handlers, indices and webhooks of a kind, and their entries.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};

use super::handler_options::{ChangedFieldArgs, FieldArgs, FilterArgs, RetryArgs, TypeArgs};
use super::manifest_entry::{
    EntryKey, FlowText, list_item, list_of, optional_scalar, optional_text, scalar, true_if,
};
use crate::edit::{ListItem, ManifestList};

/// A new entry for a list of a kind.
pub(super) struct NewEntry<'a> {
    pub(super) manifest: Option<&'a Path>,
    pub(super) kind: &'a str,
    pub(super) list: fn(usize) -> ManifestList,
    pub(super) item: ListItem,
}

#[derive(Debug, Args)]
pub(super) struct HandlerArgs {
    /// The kind, as in kopf.yaml or its CRD, or a built-in one such as apps/v1/Deployment
    kind: String,
    /// The name of the function
    function: String,
    /// When the function is called; several are separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    on: Vec<TriggerArg>,
    #[command(flatten)]
    fields: ChangedFieldArgs,
    #[command(flatten)]
    common: CommonArgs,
    /// Deletion does not wait for this handler
    #[arg(long)]
    optional: bool,
    /// The handler of a restart is also called for objects that are being deleted
    #[arg(long)]
    deleted: bool,
    /// The kind of the children that `--on child` is about, such as v1/Pod
    #[arg(long = "kind", value_name = "KIND", required_if_eq("on", "child"))]
    child: Option<String>,
    /// `--on reconcile` is called again after this time, such as 10m
    #[arg(long, value_name = "DURATION")]
    interval: Option<String>,
    /// `--on reconcile` is also called when only the status of an object has changed
    #[arg(long)]
    status: bool,
}

#[derive(Debug, Args)]
pub(super) struct ChildArgs {
    /// The kind of the owners, as in kopf.yaml or its CRD, or a built-in one
    owner: String,
    /// The kind of the children, such as apps/v1/Deployment
    #[arg(required_unless_present = "crd")]
    kind: Option<String>,
    /// The file with the definition of a custom kind, relative to kopf.yaml
    #[arg(long, value_name = "FILE")]
    crd: Option<String>,
    /// The group of the kind, if the file defines it in several
    #[arg(long, requires = "crd")]
    group: Option<String>,
    /// The version of the kind; by default the stored one
    #[arg(long, requires = "crd")]
    version: Option<String>,
    /// The plural of a custom kind without a definition
    #[arg(long, value_name = "NAME", conflicts_with = "crd")]
    plural: Option<String>,
    /// Whether objects of a custom kind without a definition are in namespaces
    #[arg(long, value_name = "SCOPE", requires = "plural")]
    scope: Option<ScopeArg>,
    /// How a child gets new values; by default in place
    #[arg(long, value_name = "STRATEGY")]
    update: Option<UpdateArg>,
    /// Several children are updated one after the other
    #[arg(long)]
    one_at_a_time: bool,
    /// Whether a child that is no longer applied is deleted; by default it is
    #[arg(long, value_name = "BOOL")]
    prune: Option<bool>,
    /// Keep whole children in memory, instead of their metadata
    #[arg(long)]
    bodies: bool,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("pace").required(true).multiple(true)))]
pub(super) struct TimerArgs {
    /// The kind, as in kopf.yaml or its CRD, or a built-in one such as apps/v1/Deployment
    kind: String,
    /// The name of the function
    function: String,
    /// The pause between two calls, such as 30s
    #[arg(long, value_name = "DURATION", group = "pace")]
    interval: Option<String>,
    /// Call it on a grid of the interval from the first call, however long the calls take
    #[arg(long, requires = "interval")]
    sharp: bool,
    /// Only if the object has not changed for this time, such as 10s
    #[arg(long, value_name = "DURATION", group = "pace")]
    idle: Option<String>,
    /// The delay before the first call, such as 1m, or `{fn: name}` of a function that returns it
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<FlowText>,
    #[command(flatten)]
    field: FieldArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
pub(super) struct DaemonArgs {
    /// The kind, as in kopf.yaml or its CRD, or a built-in one such as apps/v1/Deployment
    kind: String,
    /// The name of the function
    function: String,
    /// The delay before the first call, such as 1m, or `{fn: name}` of a function that returns it
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<FlowText>,
    /// How long the daemon may take to stop by itself, before it is cancelled; by default no time
    #[arg(long, value_name = "DURATION")]
    cancellation_backoff: Option<String>,
    /// How long the daemon may take to end once cancelled; by default it is not cancelled
    #[arg(long, value_name = "DURATION")]
    cancellation_timeout: Option<String>,
    /// How often the log reports that the operator still waits for the daemon
    #[arg(long, value_name = "DURATION")]
    cancellation_polling: Option<String>,
    #[command(flatten)]
    field: FieldArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// The options of handlers, timers and daemons.
#[derive(Debug, Args)]
struct CommonArgs {
    /// The id in the annotations of objects, if it is not the name of the function
    #[arg(long)]
    id: Option<String>,
    #[command(flatten)]
    retries: RetryArgs,
    #[command(flatten)]
    filters: FilterArgs,
    #[command(flatten)]
    types: TypeArgs,
}

#[derive(Debug, Args)]
pub(super) struct IndexArgs {
    /// The kind, as in kopf.yaml or its CRD, or a built-in one such as v1/Pod
    kind: String,
    /// The name of the index, and of the function that returns the keys of an object
    index: String,
    /// The Rust type of the keys; by default String
    #[arg(long, value_name = "TYPE")]
    keys: Option<String>,
    /// The Rust type of the values; by default String
    #[arg(long, value_name = "TYPE")]
    values: Option<String>,
    #[command(flatten)]
    field: FieldArgs,
    #[command(flatten)]
    retries: RetryArgs,
    #[command(flatten)]
    filters: FilterArgs,
}

#[derive(Debug, Args)]
pub(super) struct AddWebhookArgs {
    /// The kind, as in kopf.yaml or its CRD, or a built-in one such as apps/v1/Deployment
    kind: String,
    /// The name of the function
    function: String,
    /// The function may change objects before they are stored
    #[arg(long)]
    mutate: bool,
    /// The id of the webhook, if it is not the name of the function
    #[arg(long)]
    id: Option<String>,
    /// The operations that call the webhook; several are separated by commas
    #[arg(long = "operation", value_name = "OPERATION", value_delimiter = ',')]
    operations: Vec<OperationArg>,
    /// A subresource, such as status or scale
    #[arg(long, value_name = "NAME")]
    subresource: Option<String>,
    /// The function has side effects, except in a dry run
    #[arg(long)]
    side_effects: bool,
    /// The API server admits requests if the webhook cannot be called
    #[arg(long)]
    ignore_failures: bool,
    /// The webhook configuration stays when the operator stops; `--persistent=false` confirms that
    /// requests are not checked then
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    persistent: Option<bool>,
    /// How long the API server waits for an answer, from 1s to 30s
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    #[command(flatten)]
    field: FieldArgs,
    /// Only for changes from this value of the field
    #[arg(long, value_name = "VALUE", requires = "field")]
    old: Option<FlowText>,
    /// Only for changes to this value of the field
    #[arg(long, value_name = "VALUE", requires = "field")]
    new: Option<FlowText>,
    #[command(flatten)]
    filters: FilterArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OperationArg {
    Create,
    Update,
    Delete,
    Connect,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TriggerArg {
    Create,
    Update,
    Delete,
    Resume,
    Field,
    Event,
    Reconcile,
    Child,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UpdateArg {
    InPlace,
    Recreate,
    OnDelete,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArg {
    #[value(name = "Namespaced")]
    Namespaced,
    #[value(name = "Cluster")]
    Cluster,
}

// === impl HandlerArgs ===

impl HandlerArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        let on = self.on.iter().filter_map(|on| on.to_possible_value());
        let on: Vec<String> = on.map(|on| on.get_name().to_owned()).collect();
        let keys = [
            ("on", list_of(&on)),
            ("kind", optional_scalar(self.child.as_ref())),
        ]
        .into_iter()
        .chain(self.fields.keys())
        .chain([
            ("fn", Some(scalar(&self.function))),
            ("interval", optional_scalar(self.interval.as_ref())),
            ("status", true_if(self.status)),
        ])
        .chain(self.common.keys())
        .chain([
            ("optional", true_if(self.optional)),
            ("deleted", true_if(self.deleted)),
        ]);
        self.common.entry(&self.kind, list_item(keys))
    }
}

// === impl ChildArgs ===

impl ChildArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        let word = |value: Option<clap::builder::PossibleValue>| {
            value.map(|value| value.get_name().to_owned())
        };
        let options = [
            ("crd", optional_scalar(self.crd.as_ref())),
            ("group", optional_scalar(self.group.as_ref())),
            ("version", optional_scalar(self.version.as_ref())),
            ("plural", optional_scalar(self.plural.as_ref())),
            (
                "scope",
                word(self.scope.and_then(|it| it.to_possible_value())),
            ),
            (
                "update",
                word(self.update.and_then(|it| it.to_possible_value())),
            ),
            ("one_at_a_time", true_if(self.one_at_a_time)),
            ("prune", self.prune.map(|prune| prune.to_string())),
            ("bodies", true_if(self.bodies)),
        ];
        let kind = optional_scalar(self.kind.as_ref());
        let item = match &kind {
            Some(kind) if options.iter().all(|(_, value)| value.is_none()) => ListItem {
                block: vec![kind.clone()],
                flow: kind.clone(),
            },
            _ => list_item([("kind", kind)].into_iter().chain(options)),
        };
        NewEntry {
            manifest: self.manifest.as_deref(),
            kind: &self.owner,
            list: ManifestList::Children,
            item,
        }
    }
}

// === impl TimerArgs ===

impl TimerArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        let own = [
            ("timer", Some(scalar(&self.function))),
            ("interval", optional_scalar(self.interval.as_ref())),
            ("sharp", true_if(self.sharp)),
            ("idle", optional_scalar(self.idle.as_ref())),
            ("initial_delay", optional_text(self.initial_delay.as_ref())),
        ];
        let keys = own
            .into_iter()
            .chain(self.field.keys())
            .chain(self.common.keys());
        self.common.entry(&self.kind, list_item(keys))
    }
}

// === impl DaemonArgs ===

impl DaemonArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        let duration = |option: &Option<String>| optional_scalar(option.as_ref());
        let own = [
            ("daemon", Some(scalar(&self.function))),
            ("initial_delay", optional_text(self.initial_delay.as_ref())),
            ("cancellation_backoff", duration(&self.cancellation_backoff)),
            ("cancellation_timeout", duration(&self.cancellation_timeout)),
            ("cancellation_polling", duration(&self.cancellation_polling)),
        ];
        let keys = own
            .into_iter()
            .chain(self.field.keys())
            .chain(self.common.keys());
        self.common.entry(&self.kind, list_item(keys))
    }
}

// === impl CommonArgs ===

impl CommonArgs {
    fn keys(&self) -> impl Iterator<Item = EntryKey> {
        [("id", optional_scalar(self.id.as_ref()))]
            .into_iter()
            .chain(self.retries.keys())
            .chain(self.filters.keys())
            .chain(self.types.keys())
    }

    fn entry<'a>(&'a self, kind: &'a str, item: ListItem) -> NewEntry<'a> {
        NewEntry {
            manifest: self.filters.manifest(),
            kind,
            list: ManifestList::Handlers,
            item,
        }
    }
}

// === impl IndexArgs ===

impl IndexArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        let own = [
            ("index", Some(scalar(&self.index))),
            ("keys", optional_scalar(self.keys.as_ref())),
            ("values", optional_scalar(self.values.as_ref())),
        ];
        let keys = own
            .into_iter()
            .chain(self.field.keys())
            .chain(self.retries.keys())
            .chain(self.filters.keys());
        NewEntry {
            manifest: self.filters.manifest(),
            kind: &self.kind,
            list: ManifestList::Indices,
            item: list_item(keys),
        }
    }
}

// === impl AddWebhookArgs ===

impl AddWebhookArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        NewEntry {
            manifest: self.filters.manifest(),
            kind: &self.kind,
            list: ManifestList::Admission,
            item: self.item(),
        }
    }

    fn item(&self) -> ListItem {
        let role = if self.mutate { "mutate" } else { "validate" };
        let operations: Vec<_> = self
            .operations
            .iter()
            .filter_map(|operation| operation.to_possible_value())
            .map(|operation| operation.get_name().to_uppercase())
            .collect();
        let operations = (!operations.is_empty()).then(|| format!("[{}]", operations.join(", ")));
        let persistent = self.persistent.map(|persistent| persistent.to_string());
        let own = [
            (role, Some(scalar(&self.function))),
            ("id", optional_scalar(self.id.as_ref())),
            ("operations", operations),
            ("subresource", optional_scalar(self.subresource.as_ref())),
            ("side_effects", true_if(self.side_effects)),
            ("ignore_failures", true_if(self.ignore_failures)),
            ("persistent", persistent),
            ("timeout", optional_scalar(self.timeout.as_ref())),
        ];
        let changed = [
            ("old", optional_text(self.old.as_ref())),
            ("new", optional_text(self.new.as_ref())),
        ];
        list_item(
            own.into_iter()
                .chain(self.field.keys())
                .chain(changed)
                .chain(self.filters.keys()),
        )
    }
}
