//! `kopf-gen runtime`: shows or changes the source of the runtime of an operator crate.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::console::Console;
use super::crate_folder::find_root;
use super::draft::CrateDraft;
use super::exit_status::CommandStatus;
use super::runtime_args::git_source;
use super::write_plan::{WriteMode, apply_plan, recover_interrupted_run};
use crate::crate_path::CratePath;
use crate::plan::PlannedFile;
use crate::runtime_source::{CargoManifest, DeclaredSource, Error, RuntimeSource};
use crate::write::EditPolicy;

/// Show or change the place from which a crate takes kopf-runtime
#[derive(Debug, Args)]
pub(super) struct RuntimeCommandArgs {
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    #[command(subcommand)]
    source: Option<SourceArgs>,
}

#[derive(Debug, Subcommand)]
enum SourceArgs {
    /// Copy it into the crate, from what this program carries; `generate` updates the copy
    Vendor,
    /// Take it from a git repository
    Git {
        /// The address; `URL#REV` names a commit, tag or branch
        #[arg(value_name = "URL[#REV]")]
        address: String,
    },
    /// Take a published version
    Version {
        /// The version, as in Cargo.toml
        version: String,
    },
    /// Take it from a folder, to work on both
    Path {
        /// The checkout of kopf-gen, or its folder `runtime`
        folder: PathBuf,
    },
}

pub(super) fn run(args: &RuntimeCommandArgs, console: &mut Console) -> CommandStatus {
    match run_in_crate(args, console) {
        Ok(status) | Err(status) => status,
    }
}

fn run_in_crate(
    args: &RuntimeCommandArgs,
    console: &mut Console,
) -> Result<CommandStatus, CommandStatus> {
    let root = find_root(args.manifest.as_deref()).map_err(|message| console.fail(&message))?;
    recover_interrupted_run(&root, WriteMode::WRITE, console)?;
    let text = std::fs::read_to_string(root.join("Cargo.toml"))
        .map_err(|error| console.fail(&format!("Cargo.toml cannot be read: {error}")))?;
    let mut manifest = CargoManifest::parse(&text).map_err(|error| console.fail_with(&error))?;
    let Some(wanted) = &args.source else {
        return Ok(show(&manifest.source(), &root, console));
    };
    let source = wanted
        .source(&root)
        .and_then(|source| manifest.set_source(&source).map(|()| source))
        .map_err(|error| console.fail_with(&error))?;
    let draft = CrateDraft::open(&root).map_err(|error| console.fail_with(&error))?;
    let path = CratePath::new("Cargo.toml").map_err(|error| console.fail_with(&error))?;
    let cargo = PlannedFile::given(path, Some(text.into()), manifest.text());
    let plan = draft.plan_with_source(&source, cargo, console)?;
    let status = apply_plan(&root, &plan, EditPolicy::Keep, WriteMode::WRITE, console);
    if status == CommandStatus::Ok {
        console.print_line(&format!("kopf-runtime: {source}"));
    }
    Ok(status)
}

fn show(declared: &DeclaredSource, root: &Path, console: &mut Console) -> CommandStatus {
    let source = match declared {
        DeclaredSource::Here(source) => source,
        DeclaredSource::Workspace => {
            console
                .print_line("the Cargo.toml of the workspace says where kopf-runtime comes from");
            return CommandStatus::Ok;
        }
        DeclaredSource::Unknown => {
            return console
                .fail("Cargo.toml has no dependency `kopf-runtime` that Cargo could find");
        }
    };
    console.print_line(&format!("kopf-runtime: {source}"));
    if let RuntimeSource::Folder(folder) = source
        && let Err(error) = RuntimeSource::folder(&root.join(folder), root)
    {
        return console.fail_with(&error);
    }
    if !source.is_portable() {
        console.print_line(HINT);
    }
    CommandStatus::Ok
}

/// The note on a crate that builds on one machine only.
pub(super) const HINT: &str = "the crate builds only where this is; `kopf-gen runtime vendor` puts a copy into the crate, `kopf-gen runtime git URL` names a repository";

// === impl SourceArgs ===

impl SourceArgs {
    fn source(&self, root: &Path) -> Result<RuntimeSource, Error> {
        match self {
            Self::Vendor => Ok(RuntimeSource::Vendored),
            Self::Git { address } => git_source(address),
            Self::Version { version } => RuntimeSource::registry(version),
            Self::Path { folder } => RuntimeSource::folder(folder, root),
        }
    }
}
