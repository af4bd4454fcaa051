//! `kopf-gen generate`: brings an operator crate up to date with its manifest and its CRDs.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use super::draft::{Draft, FirstEntries};
use super::new::{add_inputs, operator_name};
use super::runtime_source::RuntimeArgs;
use super::{Report, Status, watch};
use crate::diff;
use crate::load::manifest::FILE_NAME;
use crate::plan::{InitialHandlers, Plan};
use crate::write::{self, Change, Comparison, EditedFiles, Lock};

/// What a kind begins with when it is added.
const FIRST_ENTRIES: FirstEntries = FirstEntries {
    handlers: &[
        "{on: create, fn: create_fn}",
        "{on: update, fn: update_fn}",
        "{on: delete, fn: delete_fn}",
    ],
    indices: &[],
    admission: &[],
};

/// Bring an operator crate up to date with its manifest and its CRDs
#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// Files, folders or globs with CustomResourceDefinitions to add; `-` is standard input
    #[arg(value_name = "CRD")]
    crds: Vec<String>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    mode: Mode,
    /// Overwrite generated files even if they were edited by hand
    #[arg(long)]
    force: bool,
    /// Generate again whenever kopf.yaml, a CRD that it names, or a file in crds/ changes
    #[arg(long, conflicts_with_all = ["check", "diff", "dry_run", "crds"])]
    watch: bool,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

/// What to do instead of writing.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Mode {
    /// Write nothing; end with 3 if something is out of date, with 4 if a generated file was edited
    #[arg(long)]
    check: bool,
    /// Write nothing; print what would change as a diff
    #[arg(long)]
    diff: bool,
    /// Write nothing; list what would be written
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &GenerateArgs, report: &mut Report) -> Status {
    if args.watch {
        return match find_root(args.manifest.as_deref()) {
            Ok(root) => watch::forever(&root, || {
                // A mistake is shown, and the files stay as they are until it is mended.
                once(args, report);
            }),
            Err(message) => report.fail(&message),
        };
    }
    once(args, report)
}

fn once(args: &GenerateArgs, report: &mut Report) -> Status {
    let edited = if args.force {
        EditedFiles::Overwrite
    } else {
        EditedFiles::Keep
    };
    match prepare(args, report) {
        Ok((root, plan)) => finish(&root, &plan, edited, args.mode, report),
        Err(status) => status,
    }
}

fn prepare(args: &GenerateArgs, report: &mut Report) -> Result<(PathBuf, Plan), Status> {
    let (root, mut draft) = match find_root(args.manifest.as_deref()) {
        Ok(root) => {
            settle(&root, args.mode, report)?;
            let draft = Draft::open(&root).map_err(|error| report.fail_with(&error))?;
            (root, draft)
        }
        Err(_) if args.manifest.is_none() && !args.crds.is_empty() => {
            let root = PathBuf::from(".");
            let name = operator_name(None, &root).map_err(|message| report.fail(&message))?;
            let draft = Draft::begin(&root, &name, InitialHandlers::Stubs);
            (root, draft)
        }
        Err(message) => return Err(report.fail(&message)),
    };
    add_inputs(&mut draft, &args.crds, FIRST_ENTRIES, report)?;
    let plan = draft.plan(&args.runtime, report)?;
    Ok((root, plan))
}

/// Completes an interrupted run before anything is read.
pub(super) fn settle(root: &Path, mode: Mode, report: &mut Report) -> Result<(), Status> {
    if mode.writes() {
        match write::recover(root) {
            Ok(true) => report.say("completed an interrupted run"),
            Ok(false) => {}
            Err(error) => return Err(report.fail_with(&error)),
        }
    } else if write::is_interrupted(root) {
        report.say("an interrupted run waits to be completed: run `kopf-gen generate`");
        return Err(Status::Drift);
    }
    Ok(())
}

/// The folder of the operator crate.
pub(super) fn find_root(manifest: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(manifest) = manifest {
        let folder = if manifest.is_dir() {
            Some(manifest)
        } else if manifest.file_name().is_some_and(|name| name == FILE_NAME) {
            manifest.parent()
        } else {
            let manifest = manifest.display();
            return Err(format!(
                "{manifest} is neither a {FILE_NAME} nor a folder with one"
            ));
        };
        let folder = folder
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        return Ok(folder.to_path_buf());
    }
    let here = std::env::current_dir()
        .map_err(|error| format!("the current folder cannot be found: {error}"))?;
    let found = here
        .ancestors()
        .find(|folder| folder.join(FILE_NAME).is_file());
    found.map(Path::to_path_buf).ok_or_else(|| {
        format!(
            "there is no {FILE_NAME} here or above; `kopf-gen new DIR --crd FILE` makes an operator"
        )
    })
}

/// Compares the plan with the disk, then does what the mode asks for.
pub(super) fn finish(
    root: &Path,
    plan: &Plan,
    edited: EditedFiles,
    mode: Mode,
    report: &mut Report,
) -> Status {
    report.begin("writing the files");
    let comparison = match write::compare(root, plan, edited) {
        Ok(comparison) => comparison,
        Err(error) => return report.fail_with(&error),
    };
    for path in &comparison.released {
        report.say(&format!(
            "{path} is no longer generated, but it was edited: it stays, and is yours now"
        ));
    }
    for module in comparison.changes.iter().filter_map(forgotten_kind) {
        let file = format!("src/handlers/{module}.rs");
        if root.join(&file).exists() {
            report.say(&format!(
                "kopf.yaml no longer handles what {file} is for: the file stays; \
                 move what you need, then delete it and `mod {module};`"
            ));
        }
    }
    if !comparison.conflicts.is_empty() {
        return refuse(&comparison, report);
    }
    if mode.writes()
        && let Err(error) = write::apply(root, &comparison)
    {
        return report.fail_with(&error);
    }
    report.rest();
    let shown = if mode.diff {
        show_diff(&comparison)
    } else {
        Ok(())
    };
    if shown.is_err() {
        return Status::Invalid;
    }
    for change in shown_changes(&comparison) {
        report.file(action(change, mode), change.path().as_str());
    }
    if comparison.changes.is_empty() {
        report.say("everything is up to date");
    } else if mode.check {
        return Status::Drift;
    }
    Status::Ok
}

/// The module of a kind whose generated code goes.
fn forgotten_kind(change: &Change) -> Option<&str> {
    let Change::Delete { path, .. } = change else {
        return None;
    };
    let module = path
        .as_str()
        .strip_prefix("src/generated/")?
        .strip_suffix(".rs")?;
    (!module.contains('/') && module != "types").then_some(module)
}

fn refuse(comparison: &Comparison, report: &mut Report) -> Status {
    for conflict in &comparison.conflicts {
        report.say(&format!("{} was edited by hand", conflict.path));
        report.say(diff::of_conflict(conflict).trim_end());
    }
    report.fail(
        "generated files were edited by hand, and nothing was written; \
         move the edits to a file of yours, or discard them with `--force`",
    );
    Status::Edited
}

/// What is worth telling: the lock changes with everything else, and matters only alone.
fn shown_changes(comparison: &Comparison) -> impl Iterator<Item = &Change> {
    let lock = Lock::location();
    let alone = comparison.changes.len() == 1;
    comparison
        .changes
        .iter()
        .filter(move |change| alone || *change.path() != lock)
}

fn show_diff(comparison: &Comparison) -> io::Result<()> {
    let mut out = io::stdout().lock();
    shown_changes(comparison)
        .try_for_each(|change| out.write_all(diff::of_change(change).as_bytes()))
}

fn action(change: &Change, mode: Mode) -> &'static str {
    let (done, planned) = match change {
        Change::Create { .. } => ("created", "would create"),
        Change::Update { .. } => ("updated", "would update"),
        Change::Delete { .. } => ("deleted", "would delete"),
    };
    if mode.writes() { done } else { planned }
}

// === impl Mode ===

impl Mode {
    pub(super) const WRITE: Self = Self {
        check: false,
        diff: false,
        dry_run: false,
    };

    fn writes(self) -> bool {
        !(self.check || self.diff || self.dry_run)
    }
}
