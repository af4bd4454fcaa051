//! `kopf-gen remove`: removes an entry from the manifest, then generates.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::console::Console;
use super::exit_status::CommandStatus;
use super::hook::{self, RemoveHookArgs};
use super::manifest_edit::{edit_kind, suggest_entry};
use crate::edit::{self, ManifestList};
use crate::load::manifest::{ChildEntry, HandlerSection, ResourceSection, WebhookSection};

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
    /// A handler of the operator itself; your function stays until you delete it
    Hook(RemoveHookArgs),
    /// An index; your function stays until you delete it
    Index(RemoveHandlerArgs),
    /// A kind that objects of another kind own; the objects stay
    Child(RemoveHandlerArgs),
}

#[derive(Debug, Args)]
struct RemoveHandlerArgs {
    /// The kind, as in kopf.yaml or its CRD
    kind: String,
    /// The id of the handler, the name of its function or index, or the kind or file of a child
    handler: String,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// A list of a kind, and the names of its entries.
struct RemovableEntries {
    what: &'static str,
    list: fn(usize) -> ManifestList,
    /// The names of each entry, that of its function first.
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

const CHILDREN: RemovableEntries = RemovableEntries {
    what: "child",
    list: ManifestList::Children,
    names: |section| {
        let names = |child: &ChildEntry| {
            let child = child.section();
            let names = [child.kind, child.crd].into_iter().flatten();
            names.map(|name| name.value).collect()
        };
        section.children.iter().map(names).collect()
    },
};

pub(super) fn run(args: &RemoveArgs, console: &mut Console) -> CommandStatus {
    let (args, removable) = match &args.what {
        Removal::Handler(args) => (args, HANDLERS),
        Removal::Webhook(args) => (args, WEBHOOKS),
        Removal::Index(args) => (args, INDICES),
        Removal::Child(args) => (args, CHILDREN),
        Removal::Hook(args) => return hook::remove(args, console),
    };
    let manifest = args.manifest.as_deref();
    edit_kind(manifest, &args.kind, console, |text, index, manifest| {
        let entries = (removable.names)(&manifest.resources[index]);
        let wanted = entries
            .iter()
            .position(|names| names.contains(&args.handler));
        let wanted = wanted.ok_or_else(|| {
            let help = suggest_entry(&args.handler, &entries);
            let (kind, what) = (&args.kind, removable.what);
            format!("{kind} has no {what} `{}`; {help}", args.handler)
        })?;
        edit::remove(text, (removable.list)(index), wanted).map_err(|error| error.to_string())
    })
}

/// The function, the id, and the id with each field, as in the annotations of objects.
fn names_of_handler(handler: &HandlerSection) -> Vec<String> {
    let id = handler.id.as_ref().unwrap_or(&handler.function);
    let fields = handler.field.iter().flat_map(|fields| fields.as_slice());
    [&handler.function, id]
        .into_iter()
        .map(|name| name.value.clone())
        .chain(fields.map(|field| format!("{}/{}", id.value, field.value)))
        .collect()
}
