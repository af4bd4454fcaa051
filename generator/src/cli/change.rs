//! `kopf-gen add` and `kopf-gen remove`: edit the manifest, then generate.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::add_args::{DaemonArgs, HandlerArgs, IndexArgs, TimerArgs, WebhookArgs};
use super::draft::CrateDraft;
use super::generate::{WriteMode, find_root, finish, settle};
use super::hook::{self, HookArgs, ProbeArgs, RemoveHookArgs};
use super::runtime_source::RuntimeArgs;
use super::{CommandStatus, Console};
use crate::diagnostic::{Diagnostics, Sources};
use crate::edit::{self, ManifestList};
use crate::load::manifest::{
    self, FILE_NAME, HandlerSection, Manifest, ResourceSection, WebhookSection,
};
use crate::model::operator::Operator;
use crate::suggest::did_you_mean;
use crate::write::EditPolicy;

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
struct RemoveHandlerArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The id of the handler, or the name of its function
    handler: String,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// A list of a kind from which entries are removed.
struct RemovableEntries {
    what: &'static str,
    list: fn(usize) -> ManifestList,
    /// The names by which each entry is known, that of its function first.
    names: fn(&ResourceSection) -> Vec<Vec<String>>,
}

const HANDLERS: RemovableEntries = RemovableEntries {
    what: "handler",
    list: ManifestList::Handlers,
    names: |section| section.handlers.iter().map(names_of_handler).collect(),
};

const WEBHOOKS: RemovableEntries = RemovableEntries {
    what: "webhook",
    list: ManifestList::Admission,
    names: |section| {
        let names = |webhook: &WebhookSection| {
            let names = [webhook.function(), webhook.id.as_ref()];
            let names = names.into_iter().flatten();
            names.map(|name| name.value.clone()).collect()
        };
        section.admission.iter().map(names).collect()
    },
};

const INDICES: RemovableEntries = RemovableEntries {
    what: "index",
    list: ManifestList::Indices,
    names: |section| {
        let indices = section.indices.iter();
        indices.map(|it| vec![it.index.value.clone()]).collect()
    },
};

pub(super) fn add(args: &AddArgs, console: &mut Console) -> CommandStatus {
    let entry = match &args.what {
        Addition::Handler(args) => args.entry(),
        Addition::Timer(args) => args.entry(),
        Addition::Daemon(args) => args.entry(),
        Addition::Index(args) => args.entry(),
        Addition::Webhook(args) => args.entry(),
        Addition::Startup(args) => return hook::add("startup", args, console),
        Addition::Cleanup(args) => return hook::add("cleanup", args, console),
        Addition::Login(args) => return hook::add("login", args, console),
        Addition::Probe(args) => return hook::add_probe(args, console),
    };
    change(entry.manifest, entry.kind, console, |text, index, _| {
        let list = (entry.list)(index);
        edit::append(text, list, &entry.item).map_err(|error| error.to_string())
    })
}

pub(super) fn remove(args: &RemoveArgs, console: &mut Console) -> CommandStatus {
    let (args, place) = match &args.what {
        Removal::Handler(args) => (args, HANDLERS),
        Removal::Webhook(args) => (args, WEBHOOKS),
        Removal::Index(args) => (args, INDICES),
        Removal::Hook(args) => return hook::remove(args, console),
    };
    let manifest = args.manifest.as_deref();
    change(manifest, &args.kind, console, |text, index, manifest| {
        let entries = (place.names)(&manifest.resources[index]);
        let wanted = entries
            .iter()
            .position(|names| names.contains(&args.handler));
        let wanted = wanted.ok_or_else(|| {
            let help = known(&args.handler, &entries);
            let (kind, what) = (&args.kind, place.what);
            format!("{kind} has no {what} `{}`; {help}", args.handler)
        })?;
        edit::remove(text, (place.list)(index), wanted).map_err(|error| error.to_string())
    })
}

/// What somebody may have meant who named an entry that is not there, each entry with its names.
pub(super) fn known(wanted: &str, entries: &[Vec<String>]) -> String {
    let names = || entries.iter().flatten().map(String::as_str);
    let listed: Vec<&str> = entries
        .iter()
        .filter_map(|names| names.first())
        .map(String::as_str)
        .collect();
    did_you_mean(wanted, names()).unwrap_or_else(|| match listed[..] {
        [] => "it has none".to_owned(),
        _ => format!("it has {}", listed.join(", ")),
    })
}

/// Changes the manifest of a crate at the resource of a kind, then generates.
fn change(
    manifest: Option<&Path>,
    kind: &str,
    console: &mut Console,
    edit: impl FnOnce(&str, usize, &Manifest) -> Result<String, String>,
) -> CommandStatus {
    edit_manifest(manifest, console, |text, operator, manifest| {
        edit(text, find_kind(operator, kind)?, manifest)
    })
}

/// Changes the manifest of a crate, then generates.
pub(super) fn edit_manifest(
    manifest: Option<&Path>,
    console: &mut Console,
    edit: impl FnOnce(&str, &Operator, &Manifest) -> Result<String, String>,
) -> CommandStatus {
    let changed = (|| {
        let root = find_root(manifest).map_err(|message| console.fail(&message))?;
        settle(&root, WriteMode::WRITE, console)?;
        let mut draft = CrateDraft::open(&root).map_err(|error| console.fail_with(&error))?;
        let operator = draft.load(console)?.operator;
        let manifest = parse(draft.manifest());
        let text = edit(draft.manifest(), &operator, &manifest)
            .map_err(|message| console.fail(&message))?;
        draft.set_manifest(text);
        let plan = draft.plan(&RuntimeArgs::default(), console)?;
        Ok((root, plan))
    })();
    match changed {
        Ok((root, plan)) => finish(&root, &plan, EditPolicy::Keep, WriteMode::WRITE, console),
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

/// The function, the id, and the id with each field as objects carry it.
fn names_of_handler(handler: &HandlerSection) -> Vec<String> {
    let id = handler.id.as_ref().unwrap_or(&handler.function);
    let fields = handler.field.iter().flat_map(|fields| fields.as_slice());
    [&handler.function, id]
        .into_iter()
        .map(|name| name.value.clone())
        .chain(fields.map(|field| format!("{}/{}", id.value, field.value)))
        .collect()
}
