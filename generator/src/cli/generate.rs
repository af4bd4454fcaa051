//! `kopf-gen generate`: brings an operator crate up to date with its manifest and its CRDs.

use std::path::PathBuf;

use clap::Args;

use super::console::Console;
use super::crate_folder::{find_root, operator_name};
use super::crd_inputs::add_inputs;
use super::definition_fix::FixArgs;
use super::draft::{CrateDraft, InitialEntries};
use super::exit_status::CommandStatus;
use super::runtime_args::RuntimeArgs;
use super::watch;
use super::write_plan::{WriteMode, apply_plan, recover_interrupted_run};
use crate::load::crd::NameFix;
use crate::plan::InitialHandlers;
use crate::write::{EditPolicy, WantedFiles};

/// The first entries of a kind that `generate` adds to the manifest.
const FIRST_ENTRIES: InitialEntries = InitialEntries {
    children: &[],
    handlers: &[
        "{on: create, fn: create}",
        "{on: update, fn: update}",
        "{on: delete, fn: delete}",
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
    mode: WriteMode,
    /// Overwrite generated files even if they were edited by hand
    #[arg(long)]
    force: bool,
    /// Generate again whenever kopf.yaml, a CRD that it names, or a file in crds/ changes
    #[arg(long, conflicts_with_all = ["check", "diff", "dry_run", "crds"])]
    watch: bool,
    #[command(flatten)]
    fix: FixArgs,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

pub(super) fn run(args: &GenerateArgs, console: &mut Console) -> CommandStatus {
    if args.watch {
        return match find_root(args.manifest.as_deref()) {
            Ok(root) => watch::generate_on_change(&root, || {
                // After an error the files stay as they are until the user corrects it.
                generate_once(args, console);
            }),
            Err(message) => console.fail(&message),
        };
    }
    generate_once(args, console)
}

fn generate_once(args: &GenerateArgs, console: &mut Console) -> CommandStatus {
    let edited = if args.force {
        EditPolicy::Overwrite
    } else {
        EditPolicy::Keep
    };
    match prepare(args, console) {
        Ok((root, plan)) => apply_plan(&root, &plan, edited, args.mode, console),
        Err(status) => status,
    }
}

fn prepare(
    args: &GenerateArgs,
    console: &mut Console,
) -> Result<(PathBuf, WantedFiles), CommandStatus> {
    let (root, mut draft) = match find_root(args.manifest.as_deref()) {
        Ok(root) => {
            recover_interrupted_run(&root, args.mode, console)?;
            let draft = CrateDraft::open(&root).map_err(|error| console.fail_with(&error))?;
            (root, draft)
        }
        Err(_) if args.manifest.is_none() && !args.crds.is_empty() => {
            let root = PathBuf::from(".");
            let name = operator_name(None, &root).map_err(|message| console.fail(&message))?;
            let draft = CrateDraft::begin(&root, &name, InitialHandlers::Stubs);
            (root, draft)
        }
        Err(message) => return Err(console.fail(&message)),
    };
    if args.fix.fix() == NameFix::Correct {
        draft.correct_definitions();
    }
    add_inputs(
        &mut draft,
        &args.crds,
        FIRST_ENTRIES,
        args.fix.fix(),
        console,
    )?;
    let plan = draft.plan(&args.runtime, console)?;
    Ok((root, plan))
}
