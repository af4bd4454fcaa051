//! `kopf-gen upgrade`: renames in the user's files what later versions of the runtime name otherwise.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::Args;

use super::console::Console;
use super::crate_folder::find_root;
use super::exit_status::CommandStatus;
use super::write_plan::{WriteMode, recover_interrupted_run};
use crate::diagnostic::Sources;
use crate::diff;
use crate::project::read_user_files;
use crate::rename;
use crate::write::{self, Comparison, FileChange};

/// Rename in your files what this version of the runtime names otherwise; shows the changes first
///
/// Only names change that the changelog lists with a new name. For everything else that a new version
/// asks for, see "What to do" in the changelog.
#[derive(Debug, Args)]
pub(super) struct UpgradeArgs {
    /// Write the changes without a question
    #[arg(short, long)]
    yes: bool,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

pub(super) fn run(args: &UpgradeArgs, console: &mut Console) -> CommandStatus {
    upgrade(args, console).unwrap_or_else(|status| status)
}

fn upgrade(args: &UpgradeArgs, console: &mut Console) -> Result<CommandStatus, CommandStatus> {
    let root = find_root(args.manifest.as_deref()).map_err(|message| console.fail(&message))?;
    recover_interrupted_run(&root, WriteMode::WRITE, console)?;
    let user = read_user_files(&root, &mut Sources::new());
    let user = user.map_err(|error| console.fail_with(&error))?;
    // A name of one file can come to another one by `use super::*`.
    let own: BTreeSet<String> = user
        .texts()
        .flat_map(|(_, text)| rename::own_names(text))
        .collect();
    let mut changes = Vec::new();
    for (path, text) in user.texts() {
        let Some(renamed) = rename::renamed(text, &own) else {
            continue;
        };
        for name in &renamed.kept {
            let message = format!("{path}: `{name}` is also a name of yours: rename it by hand");
            console.print_line(&message);
        }
        if renamed.text != text {
            changes.push(FileChange::Update {
                path: path.clone(),
                before: text.as_bytes().to_vec(),
                after: renamed.text,
            });
        }
    }
    if changes.is_empty() {
        console.print_line("no file has an old name");
        return Ok(CommandStatus::Ok);
    }
    let comparison = Comparison {
        changes,
        ..Comparison::default()
    };
    let is_wanted = show(&comparison).and_then(|()| is_wanted(args));
    if !is_wanted.map_err(|error| console.fail_with(&error))? {
        console.print_line("nothing was written; `kopf-gen upgrade --yes` writes these changes");
        return Ok(CommandStatus::Drift);
    }
    write::apply(&root, &comparison).map_err(|error| console.fail_with(&error))?;
    for change in &comparison.changes {
        console.print_file_action("updated", change.path().as_str());
    }
    console
        .print_line("run `kopf-gen generate`; the rest is under \"What to do\" in the changelog");
    Ok(CommandStatus::Ok)
}

fn show(comparison: &Comparison) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut changes = comparison.changes.iter();
    changes.try_for_each(|change| out.write_all(diff::of_change(change).as_bytes()))
}

/// Asks whether to write, if there is a terminal to ask on.
fn is_wanted(args: &UpgradeArgs) -> io::Result<bool> {
    if args.yes || !io::stdin().is_terminal() {
        return Ok(args.yes);
    }
    let mut out = io::stderr().lock();
    out.write_all(b"Write these changes? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
