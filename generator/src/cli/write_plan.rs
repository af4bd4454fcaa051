//! Compares the wanted files with the crate on disk, then writes, lists or prints the difference.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;

use super::console::Console;
use super::exit_status::CommandStatus;
use super::schema;
use crate::diff;
use crate::runtime_source::{VENDOR_FOLDER, is_of_copy};
use crate::write::{self, Comparison, EditPolicy, FileChange, LockFile, WantedFiles};

/// Options that replace writing.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct WriteMode {
    /// Write nothing; exit with 3 if a file is out of date, with 4 if a generated file was edited
    #[arg(long)]
    check: bool,
    /// Write nothing; print the changes as a diff
    #[arg(long)]
    diff: bool,
    /// Write nothing; list the files that would change
    #[arg(long)]
    dry_run: bool,
}

/// Completes an interrupted run; call it before reading the crate.
pub(super) fn recover_interrupted_run(
    root: &Path,
    mode: WriteMode,
    console: &mut Console,
) -> Result<(), CommandStatus> {
    if mode.writes() {
        match write::recover(root) {
            Ok(true) => console.print_line("completed an interrupted run"),
            Ok(false) => {}
            Err(error) => return Err(console.fail_with(&error)),
        }
    } else if write::is_interrupted(root) {
        console.print_line("an interrupted run is not completed: run `kopf-gen generate`");
        return Err(CommandStatus::Drift);
    }
    Ok(())
}

/// Compares the wanted files with the disk, then writes or prints the difference.
pub(super) fn apply_plan(
    root: &Path,
    wanted: &WantedFiles,
    edited: EditPolicy,
    mode: WriteMode,
    console: &mut Console,
) -> CommandStatus {
    console.begin_task("writing the files");
    let comparison = match write::compare(root, wanted, edited) {
        Ok(comparison) => comparison,
        Err(error) => return console.fail_with(&error),
    };
    for path in &comparison.released {
        console.print_line(&format!(
            "{path} is no longer generated, but you edited it: it stays, and is yours now"
        ));
    }
    if comparison.keeps_copy {
        console.print_line(&format!(
            "{VENDOR_FOLDER} was edited: the copy of the runtime stays as it is until you delete the folder"
        ));
    }
    for module in comparison.changes.iter().filter_map(removed_kind) {
        let file = format!("src/handlers/{module}.rs");
        if root.join(&file).exists() {
            console.print_line(&format!(
                "kopf.yaml no longer handles what {file} is for: the file stays; \
                 move what you need, then delete it and `mod {module};`"
            ));
        }
    }
    if !comparison.conflicts.is_empty() {
        return report_conflicts(&comparison, console);
    }
    if mode.writes() {
        let written = write::apply(root, &comparison).and_then(|()| schema::refresh(root));
        if let Err(error) = written {
            return console.fail_with(&error);
        }
    }
    console.clear_progress();
    let printed = if mode.diff {
        print_diff(&comparison)
    } else {
        Ok(())
    };
    if printed.is_err() {
        return CommandStatus::Invalid;
    }
    list_changes(&comparison, mode, console);
    if comparison.changes.is_empty() {
        console.print_line("everything is up to date");
    } else if mode.check {
        return CommandStatus::Drift;
    }
    CommandStatus::Ok
}

/// The module of a kind whose generated code is deleted.
fn removed_kind(change: &FileChange) -> Option<&str> {
    let FileChange::Delete { path, .. } = change else {
        return None;
    };
    let module = path
        .as_str()
        .strip_prefix("src/generated/")?
        .strip_suffix(".rs")?;
    (!module.contains('/') && module != "types").then_some(module)
}

fn report_conflicts(comparison: &Comparison, console: &mut Console) -> CommandStatus {
    for conflict in &comparison.conflicts {
        console.print_line(&format!("{} was edited by hand", conflict.path));
        console.print_line(diff::of_conflict(conflict).trim_end());
    }
    console.fail(
        "generated files were edited by hand, and nothing was written; \
         move the edits to a file of yours, or discard them with `--force`",
    );
    CommandStatus::Edited
}

/// The changes to list: the lock file changes with every other file, and is listed only alone.
fn listed_changes(comparison: &Comparison) -> impl Iterator<Item = &FileChange> {
    let lock = LockFile::location();
    let alone = comparison.changes.len() == 1;
    comparison
        .changes
        .iter()
        .filter(move |change| alone || *change.path() != lock)
}

/// Lists the changes of all files, and the copy of the runtime as one.
fn list_changes(comparison: &Comparison, mode: WriteMode, console: &mut Console) {
    let mut copied: BTreeMap<&'static str, usize> = BTreeMap::new();
    for change in listed_changes(comparison) {
        if is_of_copy(change.path()) {
            *copied.entry(action(change, mode)).or_default() += 1;
        } else {
            console.print_file_action(action(change, mode), change.path().as_str());
        }
    }
    for (action, files) in copied {
        let files = format!("{VENDOR_FOLDER}/ ({files} files)");
        console.print_file_action(action, &files);
    }
}

fn print_diff(comparison: &Comparison) -> io::Result<()> {
    let mut out = io::stdout().lock();
    listed_changes(comparison)
        .try_for_each(|change| out.write_all(diff::of_change(change).as_bytes()))
}

fn action(change: &FileChange, mode: WriteMode) -> &'static str {
    let (done, planned) = match change {
        FileChange::Create { .. } => ("created", "would create"),
        FileChange::Update { .. } => ("updated", "would update"),
        FileChange::Delete { .. } => ("deleted", "would delete"),
    };
    if mode.writes() { done } else { planned }
}

// === impl WriteMode ===

impl WriteMode {
    pub(super) const WRITE: Self = Self {
        check: false,
        diff: false,
        dry_run: false,
    };

    fn writes(self) -> bool {
        !(self.check || self.diff || self.dry_run)
    }
}
