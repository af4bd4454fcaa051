//! The arguments of `kopf-gen add` for handlers, indices and webhooks of a kind, and their entries.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};

use super::manifest_entry::{label_filters, list_item, optional_scalar, scalar, true_if};
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
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// When the function is called; several are separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    on: Vec<TriggerArg>,
    /// The field that the handler watches
    #[arg(long, value_name = "PATH")]
    field: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
    /// Deletion does not wait for this handler
    #[arg(long)]
    optional: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("pace").required(true).multiple(true)))]
pub(super) struct TimerArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// The pause between two calls, such as 30s
    #[arg(long, value_name = "DURATION", group = "pace")]
    interval: Option<String>,
    /// Count the interval from the start of one call to the start of the next
    #[arg(long, requires = "interval")]
    sharp: bool,
    /// Only if the object has not changed for this time, such as 10s
    #[arg(long, value_name = "DURATION", group = "pace")]
    idle: Option<String>,
    /// The delay before the first call, such as 1m
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
pub(super) struct DaemonArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// The delay before the first call, such as 1m
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<String>,
    /// How long the daemon may take to stop by itself, before it is cancelled
    #[arg(long, value_name = "DURATION")]
    cancellation_backoff: Option<String>,
    /// How long the daemon may take to end once cancelled; by default there is no limit
    #[arg(long, value_name = "DURATION")]
    cancellation_timeout: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// The options that all sorts of handlers have.
#[derive(Debug, Args)]
struct CommonArgs {
    /// The id in the annotations of objects, if it is not the name of the function
    #[arg(long)]
    id: Option<String>,
    /// The number of attempts
    #[arg(long, value_name = "NUMBER")]
    retries: Option<u32>,
    /// The pause before the next attempt, such as 30s
    #[arg(long, value_name = "DURATION")]
    backoff: Option<String>,
    /// How long to keep trying, such as 1h
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Only objects with this label: `name`, `name=value`, or `!name` for objects without it
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// The name of a function that decides whether the handler is called
    #[arg(long, value_name = "NAME")]
    when: Option<String>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct IndexArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the index, and of the function that returns the keys of an object
    index: String,
    /// The Rust type of the keys; by default String
    #[arg(long, value_name = "TYPE")]
    keys: Option<String>,
    /// The Rust type of the values; by default String
    #[arg(long, value_name = "TYPE")]
    values: Option<String>,
    /// Only objects that have this field
    #[arg(long, value_name = "PATH")]
    field: Option<String>,
    /// Only objects with this label: `name`, `name=value`, or `!name` for objects without it
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// The name of a function that decides whether an object is indexed
    #[arg(long, value_name = "NAME")]
    when: Option<String>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct AddWebhookArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// The function may change objects before they are stored
    #[arg(long)]
    mutate: bool,
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
    /// The webhook configuration stays when the operator stops
    #[arg(long)]
    persistent: bool,
    /// Only objects with this label: `name`, `name=value`, or `!name` for objects without it
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// The name of a function that decides whether this one is called
    #[arg(long, value_name = "NAME")]
    when: Option<String>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
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
}

// === impl HandlerArgs ===

impl HandlerArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        NewEntry {
            manifest: self.common.manifest.as_deref(),
            kind: &self.kind,
            list: ManifestList::Handlers,
            item: self.item(),
        }
    }

    fn item(&self) -> ListItem {
        let on: Vec<_> = self
            .on
            .iter()
            .filter_map(|on| on.to_possible_value())
            .collect();
        let on: Vec<_> = on.iter().map(|on| on.get_name()).collect();
        let on = if let [on] = on[..] {
            on.to_owned()
        } else {
            format!("[{}]", on.join(", "))
        };
        let own = [
            ("on", Some(on)),
            ("field", optional_scalar(self.field.as_ref())),
            ("fn", Some(scalar(&self.function))),
        ];
        let last = [("optional", true_if(self.optional))];
        list_item(own.into_iter().chain(self.common.keys()).chain(last))
    }
}

// === impl TimerArgs ===

impl TimerArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        NewEntry {
            manifest: self.common.manifest.as_deref(),
            kind: &self.kind,
            list: ManifestList::Handlers,
            item: self.item(),
        }
    }

    fn item(&self) -> ListItem {
        let own = [
            ("timer", Some(scalar(&self.function))),
            ("interval", optional_scalar(self.interval.as_ref())),
            ("sharp", true_if(self.sharp)),
            ("idle", optional_scalar(self.idle.as_ref())),
            (
                "initial_delay",
                optional_scalar(self.initial_delay.as_ref()),
            ),
        ];
        list_item(own.into_iter().chain(self.common.keys()))
    }
}

// === impl DaemonArgs ===

impl DaemonArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        NewEntry {
            manifest: self.common.manifest.as_deref(),
            kind: &self.kind,
            list: ManifestList::Handlers,
            item: self.item(),
        }
    }

    fn item(&self) -> ListItem {
        let backoff = self.cancellation_backoff.as_ref();
        let timeout = self.cancellation_timeout.as_ref();
        let own = [
            ("daemon", Some(scalar(&self.function))),
            (
                "initial_delay",
                optional_scalar(self.initial_delay.as_ref()),
            ),
            ("cancellation_backoff", optional_scalar(backoff)),
            ("cancellation_timeout", optional_scalar(timeout)),
        ];
        list_item(own.into_iter().chain(self.common.keys()))
    }
}

// === impl IndexArgs ===

impl IndexArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        NewEntry {
            manifest: self.manifest.as_deref(),
            kind: &self.kind,
            list: ManifestList::Indices,
            item: self.item(),
        }
    }

    fn item(&self) -> ListItem {
        list_item(
            [
                ("index", Some(scalar(&self.index))),
                ("keys", optional_scalar(self.keys.as_ref())),
                ("values", optional_scalar(self.values.as_ref())),
                ("field", optional_scalar(self.field.as_ref())),
                ("labels", label_filters(&self.labels)),
                ("when", optional_scalar(self.when.as_ref())),
            ]
            .into_iter(),
        )
    }
}

// === impl CommonArgs ===

impl CommonArgs {
    fn keys(&self) -> [(&'static str, Option<String>); 6] {
        let labels = label_filters(&self.labels);
        [
            ("id", optional_scalar(self.id.as_ref())),
            ("retries", self.retries.map(|retries| retries.to_string())),
            ("backoff", optional_scalar(self.backoff.as_ref())),
            ("timeout", optional_scalar(self.timeout.as_ref())),
            ("labels", labels),
            ("when", optional_scalar(self.when.as_ref())),
        ]
    }
}

// === impl AddWebhookArgs ===

impl AddWebhookArgs {
    pub(super) fn entry(&self) -> NewEntry<'_> {
        NewEntry {
            manifest: self.manifest.as_deref(),
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
        let keys = [
            (role, Some(scalar(&self.function))),
            ("operations", operations),
            ("subresource", optional_scalar(self.subresource.as_ref())),
            ("side_effects", true_if(self.side_effects)),
            ("ignore_failures", true_if(self.ignore_failures)),
            ("persistent", true_if(self.persistent)),
            ("labels", label_filters(&self.labels)),
            ("when", optional_scalar(self.when.as_ref())),
        ];
        list_item(keys.into_iter())
    }
}
