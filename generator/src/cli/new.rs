//! `kopf-gen new`: an operator crate that builds and runs at once.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::draft::{Draft, FirstEntries};
use super::generate::{Mode, finish};
use super::report::Told;
use super::runtime_source::RuntimeArgs;
use super::{Report, Status};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Sources};
use crate::load::crd::{self, NameFix};
use crate::load::input::{self, STDIN};
use crate::model::lower::is_operator_name;
use crate::plan::InitialHandlers;
use crate::write::{self, EditedFiles, TOOL_FOLDER};

/// Make an operator crate that builds and runs at once
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The folder to make; it must not exist yet, or be empty
    dir: PathBuf,
    /// Files, folders or globs with CustomResourceDefinitions, which are copied; `-` is standard input
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<String>,
    /// The name of the operator; by default that of the folder
    #[arg(long)]
    name: Option<String>,
    /// Which handlers to begin with
    #[arg(long, value_name = "PRESET", default_value = "minimal")]
    preset: Preset,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

/// Which handlers to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
    /// A handler of new objects
    Minimal,
    /// A handler that keeps a ConfigMap in step with each object
    Child,
    /// One handler of each sort, for objects and for the operator as a whole
    Full,
}

pub(super) fn run(args: &NewArgs, report: &mut Report) -> Status {
    match prepare(args, report) {
        Ok((draft, name)) => match draft.plan(&args.runtime, report) {
            Ok(plan) => {
                let status = finish(&args.dir, &plan, EditedFiles::Keep, Mode::WRITE, report);
                if status == Status::Ok {
                    report.say(&next_steps(&args.dir, &name, draft.has_crds()));
                }
                status
            }
            Err(status) => status,
        },
        Err(status) => status,
    }
}

fn prepare(args: &NewArgs, report: &mut Report) -> Result<(Draft, String), Status> {
    let name =
        operator_name(args.name.as_deref(), &args.dir).map_err(|message| report.fail(&message))?;
    let place = args.dir.display();
    match is_free(&args.dir) {
        Ok(true) => {}
        Ok(false) => {
            let message =
                format!("{place} is not empty; inside an operator crate, use `kopf-gen generate`");
            return Err(report.fail(&message));
        }
        Err(error) => return Err(report.fail(&format!("cannot look into {place}: {error}"))),
    }
    let mut draft = Draft::begin(&args.dir, &name, args.preset.beginning());
    for hook in args.preset.hooks() {
        draft
            .add_hook(hook)
            .map_err(|error| report.fail_with(&error))?;
    }
    add_inputs(&mut draft, &args.crds, args.preset.entries(), report)?;
    Ok((draft, name))
}

/// Adds every definition that the arguments name. Other files of a folder are left alone.
pub(super) fn add_inputs(
    draft: &mut Draft,
    arguments: &[String],
    first: FirstEntries,
    report: &mut Report,
) -> Result<(), Status> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    if !is_typed(arguments) {
        report.begin("reading the definitions");
    }
    let ids = input::read(arguments, &mut sources, &mut diagnostics);
    let mut files = Vec::new();
    for id in ids {
        let name = sources.name(id);
        let kinds = crd::read(&sources, id, NameFix::Report, &mut diagnostics);
        let is_meant = name == STDIN || arguments.iter().any(|argument| argument == name);
        if !kinds.is_empty() {
            files.push((id, kinds));
        } else if is_meant && !diagnostics.has_errors() {
            let message = format!("there is no CustomResourceDefinition in {name}");
            diagnostics.push(Diagnostic::error(Code::NothingFound, message));
        }
    }
    if files.is_empty() && !arguments.is_empty() && !diagnostics.has_errors() {
        let message = "there is no CustomResourceDefinition in the inputs";
        diagnostics.push(Diagnostic::error(Code::NothingFound, message));
    }
    // What is not an error is told when the files are read for good, where they are then.
    if diagnostics.has_errors() {
        diagnostics.sort();
        report.print(&diagnostics, &sources, Told::Nothing);
        return Err(Status::Invalid);
    }
    for (id, kinds) in files {
        match draft.add_crds(sources.name(id), sources.text(id), &kinds, first) {
            Ok(known) => known
                .iter()
                .for_each(|kind| report.say(&format!("{kind} is in kopf.yaml already"))),
            Err(error) => return Err(report.fail_with(&error)),
        }
    }
    Ok(())
}

/// Whether a person is about to type a definition, who knows better what takes so long.
pub(super) fn is_typed(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == "-") && io::stdin().is_terminal()
}

/// The name that was given, or else that of the folder.
pub(super) fn operator_name(given: Option<&str>, dir: &Path) -> Result<String, String> {
    let name = match given {
        Some(name) => name.to_owned(),
        None => std::path::absolute(dir)
            .ok()
            .and_then(|dir| {
                dir.file_name()
                    .map(|name| name.to_string_lossy().into_owned())
            })
            .unwrap_or_default(),
    };
    if is_operator_name(&name) {
        return Ok(name);
    }
    Err(format!(
        "`{name}` cannot name an operator: use lower-case letters, digits and dashes, \
         starting with a letter, and give it with --name"
    ))
}

/// Whether nothing is in the folder but what git and an interrupted run leave.
fn is_free(dir: &Path) -> io::Result<bool> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        let unfinished = name == TOOL_FOLDER && !write::is_interrupted(dir);
        if name != ".git" && !unfinished {
            return Ok(false);
        }
    }
    Ok(true)
}

fn next_steps(dir: &Path, name: &str, has_crds: bool) -> String {
    let dir = dir.display();
    let kinds = if has_crds {
        "kubectl apply -f crds/"
    } else {
        "kopf-gen generate FILE    # for each file with CustomResourceDefinitions"
    };
    format!("\n{name} is ready:\n  cd {dir}\n  {kinds}\n  cargo run -- --dev")
}

// === impl Preset ===

impl Preset {
    /// What each kind begins with.
    fn entries(self) -> FirstEntries {
        match self {
            Self::Minimal => FirstEntries {
                handlers: &["{on: create, fn: create_fn}"],
                ..FirstEntries::default()
            },
            Self::Child => FirstEntries {
                handlers: &["{on: [create, update, resume], fn: sync_child}"],
                ..FirstEntries::default()
            },
            Self::Full => FirstEntries {
                handlers: &[
                    "{on: create, fn: create_fn}",
                    "{on: update, fn: update_fn}",
                    "{on: delete, fn: delete_fn}",
                    "{on: resume, fn: resume_fn}",
                    "{on: field, field: metadata.labels, fn: field_fn}",
                    "{on: event, fn: event_fn}",
                    "{timer: timer_fn, interval: 1m}",
                    "{daemon: daemon_fn}",
                ],
                indices: &["{index: index_fn}"],
                admission: &["{validate: validate_fn}", "{mutate: mutate_fn}"],
            },
        }
    }

    /// What happens to the operator as a whole.
    fn hooks(self) -> &'static [&'static str] {
        match self {
            Self::Minimal | Self::Child => &[],
            Self::Full => &[
                "{startup: startup_fn}",
                "{cleanup: cleanup_fn}",
                "{login: login_fn}",
                "{probe: probe_fn}",
            ],
        }
    }

    /// What the handlers do at first.
    fn beginning(self) -> InitialHandlers {
        match self {
            Self::Minimal | Self::Full => InitialHandlers::Stubs,
            Self::Child => InitialHandlers::Children,
        }
    }
}
