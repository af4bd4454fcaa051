//! Adds and removes handlers of `operator.handlers`: state, startup, cleanup, login and probe.

use std::path::{Path, PathBuf};

use clap::Args;

use super::console::Console;
use super::exit_status::CommandStatus;
use super::handler_options::RetryArgs;
use super::manifest_edit::{edit_manifest, suggest_entry};
use super::manifest_entry::{FlowText, list_item, optional_scalar, optional_text, scalar};
use crate::edit::{self, ListItem, ManifestList};
use crate::load::manifest::HookSection;

#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// The name of the function
    function: String,
    /// The id in log lines, if it is not the name of the function
    #[arg(long)]
    id: Option<String>,
    /// A value for the function, as YAML
    #[arg(long, value_name = "VALUE")]
    param: Option<FlowText>,
    #[command(flatten)]
    retries: RetryArgs,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// A probe has no options for retries: the next health check calls it again.
#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// The name of the function
    function: String,
    /// The id of its result, if it is not the name of the function
    #[arg(long)]
    id: Option<String>,
    /// How long it may run, such as 5s
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// A value for the function, as YAML
    #[arg(long, value_name = "VALUE")]
    param: Option<FlowText>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RemoveHookArgs {
    /// The id of the handler, or the name of its function
    handler: String,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// Adds a handler under the key `kind`: `state`, `startup`, `cleanup` or `login`.
pub(super) fn add(kind: &'static str, args: &HookArgs, console: &mut Console) -> CommandStatus {
    append(args.manifest.as_deref(), &args.item(kind), console)
}

/// Adds a probe.
pub(super) fn add_probe(args: &ProbeArgs, console: &mut Console) -> CommandStatus {
    append(args.manifest.as_deref(), &args.item(), console)
}

fn append(manifest: Option<&Path>, item: &ListItem, console: &mut Console) -> CommandStatus {
    edit_manifest(manifest, console, |text, _, _| {
        edit::append(text, ManifestList::OperatorHandlers, item).map_err(|error| error.to_string())
    })
}

pub(super) fn remove(args: &RemoveHookArgs, console: &mut Console) -> CommandStatus {
    edit_manifest(args.manifest.as_deref(), console, |text, _, manifest| {
        let hooks = &manifest.operator.handlers;
        let entries: Vec<Vec<String>> = hooks.iter().map(names).collect();
        let place = entries
            .iter()
            .position(|names| names.contains(&args.handler));
        let place = place.ok_or_else(|| {
            let help = suggest_entry(&args.handler, &entries);
            format!("the operator has no handler `{}`; {help}", args.handler)
        })?;
        edit::remove(text, ManifestList::OperatorHandlers, place).map_err(|error| error.to_string())
    })
}

fn names(hook: &HookSection) -> Vec<String> {
    let function = hook.function().map(|(_, name)| name);
    let names = function.into_iter().chain(&hook.id);
    names.map(|it| it.value.clone()).collect()
}

impl HookArgs {
    fn item(&self, kind: &'static str) -> ListItem {
        let keys = [
            (kind, Some(scalar(&self.function))),
            ("id", optional_scalar(self.id.as_ref())),
            ("param", optional_text(self.param.as_ref())),
        ];
        list_item(keys.into_iter().chain(self.retries.keys()))
    }
}

impl ProbeArgs {
    fn item(&self) -> ListItem {
        let keys = [
            ("probe", Some(scalar(&self.function))),
            ("id", optional_scalar(self.id.as_ref())),
            ("timeout", optional_scalar(self.timeout.as_ref())),
            ("param", optional_text(self.param.as_ref())),
        ];
        list_item(keys.into_iter())
    }
}
