//! `kopf-gen add` and `kopf-gen remove`: edit the manifest, then generate.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::draft::Draft;
use super::generate::{Mode, find_root, finish, settle};
use super::hook::{self, HookArgs, ProbeArgs, RemoveHookArgs};
use super::runtime_source::RuntimeArgs;
use super::{Report, Status};
use crate::diagnostic::{Diagnostics, Sources};
use crate::edit::{self, Item, List};
use crate::load::manifest::{self, FILE_NAME, HandlerSection, Manifest, WebhookSection};
use crate::model::operator::Operator;
use crate::suggest::did_you_mean;
use crate::write::EditedFiles;

/// Add something to kopf.yaml, keeping its comments, then generate
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    #[command(subcommand)]
    what: Addition,
}

#[derive(Debug, Subcommand)]
enum Addition {
    /// A function that is called for objects of a kind
    Handler(Box<HandlerArgs>),
    /// A function that is called from time to time
    Timer(Box<TimerArgs>),
    /// A function that runs as long as an object is there
    Daemon(Box<DaemonArgs>),
    /// Objects found by a key
    Index(Box<IndexArgs>),
    /// A function that validates or mutates objects
    Webhook(Box<WebhookArgs>),
    /// A function that has to succeed before the operator asks anything of the cluster
    Startup(HookArgs),
    /// A function that is called when the operator stops
    Cleanup(HookArgs),
    /// A function that finds credentials for the cluster
    Login(HookArgs),
    /// A function that is asked whether the operator is alive
    Probe(ProbeArgs),
}

/// Remove something from kopf.yaml, keeping its comments, then generate
#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    #[command(subcommand)]
    what: Removal,
}

#[derive(Debug, Subcommand)]
enum Removal {
    /// A handler; your function stays until you delete it
    Handler(RemoveHandlerArgs),
    /// A webhook; your function stays until you delete it
    Webhook(RemoveHandlerArgs),
    /// A handler of the operator as a whole; your function stays until you delete it
    Hook(RemoveHookArgs),
    /// An index; your function stays until you delete it
    Index(RemoveHandlerArgs),
}

#[derive(Debug, Args)]
struct HandlerArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// When it is called; several are separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    on: Vec<Occasion>,
    /// The field that it is about
    #[arg(long, value_name = "PATH")]
    field: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
    /// Deletion does not wait for it
    #[arg(long)]
    optional: bool,
}

#[derive(Debug, Args)]
struct TimerArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// The pause between two calls, such as 30s
    #[arg(long, value_name = "DURATION", required_unless_present = "idle")]
    interval: Option<String>,
    /// Count the interval from call to call, however long they take
    #[arg(long, requires = "interval")]
    sharp: bool,
    /// Only when the object has not changed for so long, such as 10s
    #[arg(long, value_name = "DURATION")]
    idle: Option<String>,
    /// How long to wait at first, such as 1m
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct DaemonArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// How long to wait at first, such as 1m
    #[arg(long, value_name = "DURATION")]
    initial_delay: Option<String>,
    /// How long it may take to stop by itself, before it is interrupted
    #[arg(long, value_name = "DURATION")]
    cancellation_backoff: Option<String>,
    /// How long it may take to be gone when interrupted; without it, it is waited for
    #[arg(long, value_name = "DURATION")]
    cancellation_timeout: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// The options that all sorts of handlers have.
#[derive(Debug, Args)]
struct CommonArgs {
    /// The id that objects carry, if it is not the name of the function
    #[arg(long)]
    id: Option<String>,
    /// How many attempts are made
    #[arg(long, value_name = "NUMBER")]
    retries: Option<u32>,
    /// How long to wait before the next attempt, such as 30s
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
struct IndexArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the index, and of the function that says by which keys an object is found
    index: String,
    /// The Rust type of the keys; String if left out
    #[arg(long, value_name = "TYPE")]
    keys: Option<String>,
    /// The Rust type of what is found; String if left out
    #[arg(long, value_name = "TYPE")]
    values: Option<String>,
    /// Only objects that have this field
    #[arg(long, value_name = "PATH")]
    field: Option<String>,
    /// Only objects with this label: `name`, `name=value`, or `!name` for objects without it
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// The name of a function that decides whether an object is looked at
    #[arg(long, value_name = "NAME")]
    when: Option<String>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct WebhookArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The name of the function
    function: String,
    /// The function may change objects before they are stored
    #[arg(long)]
    mutate: bool,
    /// What it is asked about; several are separated by commas
    #[arg(long = "operation", value_name = "OPERATION", value_delimiter = ',')]
    operations: Vec<AskedAbout>,
    /// A subresource, such as status or scale
    #[arg(long, value_name = "NAME")]
    subresource: Option<String>,
    /// The function does more than answering, except in a dry run
    #[arg(long)]
    side_effects: bool,
    /// Requests pass when the function cannot be asked
    #[arg(long)]
    ignore_failures: bool,
    /// The webhook stays when the operator stops
    #[arg(long)]
    persistent: bool,
    /// Only objects with this label: `name`, `name=value`, or `!name` for objects without it
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// The name of a function that decides whether this one is asked
    #[arg(long, value_name = "NAME")]
    when: Option<String>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AskedAbout {
    Create,
    Update,
    Delete,
    Connect,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Occasion {
    Create,
    Update,
    Delete,
    Resume,
    Field,
    Event,
}

#[derive(Debug, Args)]
struct RemoveHandlerArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The id of the handler, or the name of its function
    handler: String,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

pub(super) fn add(args: &AddArgs, report: &mut Report) -> Status {
    let (manifest, kind, list, item): (_, _, fn(usize) -> List, _) = match &args.what {
        Addition::Handler(args) => (
            &args.common.manifest,
            &args.kind,
            List::Handlers,
            args.item(),
        ),
        Addition::Timer(args) => (
            &args.common.manifest,
            &args.kind,
            List::Handlers,
            args.item(),
        ),
        Addition::Daemon(args) => (
            &args.common.manifest,
            &args.kind,
            List::Handlers,
            args.item(),
        ),
        Addition::Index(args) => (&args.manifest, &args.kind, List::Indices, args.item()),
        Addition::Webhook(args) => (&args.manifest, &args.kind, List::Admission, args.item()),
        Addition::Startup(args) => return hook::add("startup", args, report),
        Addition::Cleanup(args) => return hook::add("cleanup", args, report),
        Addition::Login(args) => return hook::add("login", args, report),
        Addition::Probe(args) => return hook::add_probe(args, report),
    };
    change(manifest.as_deref(), kind, report, |text, index, _| {
        edit::append(text, list(index), &item).map_err(|error| error.to_string())
    })
}

pub(super) fn remove(args: &RemoveArgs, report: &mut Report) -> Status {
    let args = match &args.what {
        Removal::Handler(args) => args,
        Removal::Webhook(args) => return remove_webhook(args, report),
        Removal::Hook(args) => return hook::remove(args, report),
        Removal::Index(args) => return remove_index(args, report),
    };
    change(
        args.manifest.as_deref(),
        &args.kind,
        report,
        |text, index, manifest| {
            let handlers = &manifest.resources[index].handlers;
            let place = handlers
                .iter()
                .position(|handler| is_called(handler, &args.handler))
                .ok_or_else(|| {
                    let names: Vec<_> = handlers
                        .iter()
                        .map(|handler| handler.function.value.as_str())
                        .collect();
                    let help = did_you_mean(&args.handler, names.iter().copied())
                        .unwrap_or_else(|| format!("it has {}", names.join(", ")));
                    format!("{} has no handler `{}`; {help}", args.kind, args.handler)
                })?;
            edit::remove(text, List::Handlers(index), place).map_err(|error| error.to_string())
        },
    )
}

fn remove_webhook(args: &RemoveHandlerArgs, report: &mut Report) -> Status {
    change(
        args.manifest.as_deref(),
        &args.kind,
        report,
        |text, index, manifest| {
            let webhooks = &manifest.resources[index].admission;
            let names = |webhook: &WebhookSection| {
                let names = [webhook.function(), webhook.id.as_ref()]
                    .into_iter()
                    .flatten();
                names.map(|name| name.value.clone()).collect::<Vec<_>>()
            };
            let place = webhooks
                .iter()
                .position(|webhook| names(webhook).contains(&args.handler))
                .ok_or_else(|| {
                    let names: Vec<_> = webhooks.iter().flat_map(names).collect();
                    let help = did_you_mean(&args.handler, names.iter().map(String::as_str))
                        .unwrap_or_else(|| format!("it has {}", names.join(", ")));
                    format!("{} has no webhook `{}`; {help}", args.kind, args.handler)
                })?;
            edit::remove(text, List::Admission(index), place).map_err(|error| error.to_string())
        },
    )
}

fn remove_index(args: &RemoveHandlerArgs, report: &mut Report) -> Status {
    change(
        args.manifest.as_deref(),
        &args.kind,
        report,
        |text, index, manifest| {
            let indices = manifest.resources[index].indices.iter();
            let names: Vec<&str> = indices.map(|it| it.index.value.as_str()).collect();
            let place = names.iter().position(|name| *name == args.handler);
            let place = place.ok_or_else(|| {
                let help = did_you_mean(&args.handler, names.iter().copied())
                    .unwrap_or_else(|| format!("it has {}", names.join(", ")));
                format!("{} has no index `{}`; {help}", args.kind, args.handler)
            })?;
            edit::remove(text, List::Indices(index), place).map_err(|error| error.to_string())
        },
    )
}

/// Changes the manifest of a crate at the resource of a kind, then generates.
fn change(
    manifest: Option<&std::path::Path>,
    kind: &str,
    report: &mut Report,
    edit: impl FnOnce(&str, usize, &Manifest) -> Result<String, String>,
) -> Status {
    edit_manifest(manifest, report, |text, operator, manifest| {
        edit(text, find_kind(operator, kind)?, manifest)
    })
}

/// Changes the manifest of a crate, then generates.
pub(super) fn edit_manifest(
    manifest: Option<&std::path::Path>,
    report: &mut Report,
    edit: impl FnOnce(&str, &Operator, &Manifest) -> Result<String, String>,
) -> Status {
    let changed = (|| {
        let root = find_root(manifest).map_err(|message| report.fail(&message))?;
        settle(&root, Mode::WRITE, report)?;
        let mut draft = Draft::open(&root).map_err(|error| report.fail_with(&error))?;
        let operator = draft.load(report)?.operator;
        let manifest = parse(draft.manifest());
        let text = edit(draft.manifest(), &operator, &manifest)
            .map_err(|message| report.fail(&message))?;
        draft.set_manifest(text);
        let plan = draft.plan(&RuntimeArgs::default(), report)?;
        Ok((root, plan))
    })();
    match changed {
        Ok((root, plan)) => finish(&root, &plan, EditedFiles::Keep, Mode::WRITE, report),
        Err(status) => status,
    }
}

/// The place of a kind in `resources`: both lists have the same order once the manifest is sound.
fn find_kind(operator: &Operator, name: &str) -> Result<usize, String> {
    let found = operator.kinds.iter().position(|kind| {
        kind.kind.eq_ignore_ascii_case(name) || kind.plural.eq_ignore_ascii_case(name)
    });
    found.ok_or_else(|| {
        let kinds: Vec<_> = operator
            .kinds
            .iter()
            .map(|kind| kind.kind.as_str())
            .collect();
        let help = did_you_mean(name, kinds.iter().copied())
            .unwrap_or_else(|| format!("it handles {}", kinds.join(", ")));
        format!("kopf.yaml has no kind `{name}`; {help}")
    })
}

fn parse(text: &str) -> Manifest {
    let mut sources = Sources::new();
    let source = sources.add(FILE_NAME, text);
    manifest::parse(&sources, source, &mut Diagnostics::new())
        .expect("it was read without errors before")
}

fn is_called(handler: &HandlerSection, name: &str) -> bool {
    let id = handler.id.as_ref().unwrap_or(&handler.function);
    let with_field = handler.field.iter().flat_map(|fields| fields.as_slice());
    handler.function.value == name
        || id.value == name
        || with_field
            .into_iter()
            .any(|field| format!("{}/{}", id.value, field.value) == name)
}

// === impl HandlerArgs ===

impl HandlerArgs {
    fn item(&self) -> Item {
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
            ("field", text(self.field.as_ref())),
            ("fn", Some(scalar(&self.function))),
        ];
        let last = [("optional", word(self.optional))];
        item(own.into_iter().chain(self.common.keys()).chain(last))
    }
}

// === impl TimerArgs ===

impl TimerArgs {
    fn item(&self) -> Item {
        let own = [
            ("timer", Some(scalar(&self.function))),
            ("interval", text(self.interval.as_ref())),
            ("sharp", word(self.sharp)),
            ("idle", text(self.idle.as_ref())),
            ("initial_delay", text(self.initial_delay.as_ref())),
        ];
        item(own.into_iter().chain(self.common.keys()))
    }
}

// === impl DaemonArgs ===

impl DaemonArgs {
    fn item(&self) -> Item {
        let backoff = self.cancellation_backoff.as_ref();
        let timeout = self.cancellation_timeout.as_ref();
        let own = [
            ("daemon", Some(scalar(&self.function))),
            ("initial_delay", text(self.initial_delay.as_ref())),
            ("cancellation_backoff", text(backoff)),
            ("cancellation_timeout", text(timeout)),
        ];
        item(own.into_iter().chain(self.common.keys()))
    }
}

// === impl IndexArgs ===

impl IndexArgs {
    fn item(&self) -> Item {
        item(
            [
                ("index", Some(scalar(&self.index))),
                ("keys", text(self.keys.as_ref())),
                ("values", text(self.values.as_ref())),
                ("field", text(self.field.as_ref())),
                ("labels", label_filters(&self.labels)),
                ("when", text(self.when.as_ref())),
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
            ("id", text(self.id.as_ref())),
            ("retries", self.retries.map(|retries| retries.to_string())),
            ("backoff", text(self.backoff.as_ref())),
            ("timeout", text(self.timeout.as_ref())),
            ("labels", labels),
            ("when", text(self.when.as_ref())),
        ]
    }
}

// === impl WebhookArgs ===

impl WebhookArgs {
    fn item(&self) -> Item {
        let role = if self.mutate { "mutate" } else { "validate" };
        let mut keys = vec![format!("{role}: {}", scalar(&self.function))];
        let operations: Vec<_> = self
            .operations
            .iter()
            .filter_map(|operation| operation.to_possible_value())
            .map(|operation| operation.get_name().to_uppercase())
            .collect();
        if !operations.is_empty() {
            keys.push(format!("operations: [{}]", operations.join(", ")));
        }
        if let Some(subresource) = &self.subresource {
            keys.push(format!("subresource: {}", scalar(subresource)));
        }
        let flags = [
            ("side_effects", self.side_effects),
            ("ignore_failures", self.ignore_failures),
            ("persistent", self.persistent),
        ];
        let set = flags.into_iter().filter(|(_, set)| *set);
        keys.extend(set.map(|(key, _)| format!("{key}: true")));
        if let Some(labels) = label_filters(&self.labels) {
            keys.push(format!("labels: {labels}"));
        }
        if let Some(when) = &self.when {
            keys.push(format!("when: {}", scalar(when)));
        }
        let flow = format!("{{{}}}", keys.join(", "));
        Item {
            block: vec![flow.clone()],
            flow,
        }
    }
}

/// An entry of the manifest with the keys that have a value.
pub(super) fn item(keys: impl Iterator<Item = (&'static str, Option<String>)>) -> Item {
    let keys: Vec<String> = keys
        .filter_map(|(key, value)| Some(format!("{key}: {}", value?)))
        .collect();
    let flow = format!("{{{}}}", keys.join(", "));
    Item {
        block: vec![flow.clone()],
        flow,
    }
}

pub(super) fn text(text: Option<&String>) -> Option<String> {
    text.map(|text| scalar(text))
}

fn word(set: bool) -> Option<String> {
    set.then(|| "true".to_owned())
}

fn label_filters(labels: &[String]) -> Option<String> {
    let filters: Vec<_> = labels.iter().map(|label| label_filter(label)).collect();
    (!filters.is_empty()).then(|| format!("{{{}}}", filters.join(", ")))
}

fn label_filter(label: &str) -> String {
    if let Some(name) = label.strip_prefix('!') {
        return format!("{}: absent", scalar(name));
    }
    match label.split_once('=') {
        Some((name, value @ ("present" | "absent"))) => {
            format!("{}: {{value: {value}}}", scalar(name))
        }
        Some((name, value)) => format!("{}: {}", scalar(name), scalar(value)),
        None => format!("{}: present", scalar(label)),
    }
}

/// A text as YAML, in quotes unless nobody can misread it.
pub(super) fn scalar(text: &str) -> String {
    const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'))
        && !WORDS.contains(&text.to_lowercase().as_str());
    let duration = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, 'm' | 's' | 'h' | 'd'));
    if plain || duration {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_quoted_when_needed() {
        for (text, written) in [
            ("spec.size", "spec.size"),
            ("30s", "30s"),
            ("1", "\"1\""),
            ("yes", "\"yes\""),
            ("a: b", "\"a: b\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }

    #[test]
    fn labels_become_filters() {
        assert_eq!(label_filter("tier"), "tier: present");
        assert_eq!(label_filter("!tier"), "tier: absent");
        assert_eq!(label_filter("tier=gold"), "tier: gold");
        assert_eq!(label_filter("tier=present"), "tier: {value: present}");
    }
}
