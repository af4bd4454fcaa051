//! `kopf-gen new`: creates an operator crate that builds and runs at once.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::console::Console;
use super::crate_folder::{is_free, operator_name, workspace_manifest};
use super::crd_inputs::add_inputs;
use super::definition_fix::FixArgs;
use super::draft::{CrateDraft, InitialEntries};
use super::exit_status::CommandStatus;
use super::runtime::HINT;
use super::runtime_args::RuntimeArgs;
use super::write_plan::{WriteMode, apply_plan};
use crate::format::FormattedFile;
use crate::pipeline;
use crate::plan::{self, CiSystem, InitialHandlers};
use crate::write::EditPolicy;

/// Create an operator crate that builds and runs at once
#[derive(Debug, Args)]
pub(super) struct NewCrateArgs {
    /// The folder to create; it must not exist yet, or be empty
    dir: PathBuf,
    /// Files, folders or globs with CustomResourceDefinitions to copy; `-` is standard input
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<String>,
    /// The name of the operator; by default that of the folder
    #[arg(long)]
    name: Option<String>,
    /// The first handlers
    #[arg(long, value_name = "PRESET", default_value = "minimal")]
    preset: Preset,
    /// Also write the file of a CI system: build, tests on a control plane, image, `generate --check`
    #[arg(long, value_name = "SYSTEM")]
    ci: Vec<CiArg>,
    #[command(flatten)]
    fix: FixArgs,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

/// A CI system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum CiArg {
    /// GitHub Actions
    Github,
    /// GitLab
    Gitlab,
}

/// The first handlers of a new crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
    /// A handler of new objects
    Minimal,
    /// A handler that keeps a ConfigMap in step with each object
    Child,
    /// One handler of each sort, for objects and for the operator itself
    Full,
}

pub(super) fn run(args: &NewCrateArgs, console: &mut Console) -> CommandStatus {
    match prepare(args, console) {
        Ok((draft, name)) => match draft.plan(&args.runtime, console) {
            Ok(mut plan) => {
                plan.files.extend(ci_files(args));
                let status = apply_plan(
                    &args.dir,
                    &plan,
                    EditPolicy::Keep,
                    WriteMode::WRITE,
                    console,
                );
                if status == CommandStatus::Ok {
                    let state = match plan.has_rejected_definitions {
                        true => "is made; correct the definitions in crds/, then",
                        false => "is ready",
                    };
                    let title = format!("{name} {state}");
                    console.print_line(&next_steps(&args.dir, &title, draft.has_crds()));
                    print_source(args, console);
                    print_profile_place(args, console);
                }
                status
            }
            Err(status) => status,
        },
        Err(status) => status,
    }
}

fn ci_files(args: &NewCrateArgs) -> Vec<FormattedFile> {
    let Ok(source) = args.runtime.source(&args.dir) else {
        return Vec::new();
    };
    let mut systems = args.ci.clone();
    systems.sort_unstable();
    systems.dedup();
    let files = systems.into_iter().map(|system| {
        let system = match system {
            CiArg::Github => CiSystem::GitHub,
            CiArg::Gitlab => CiSystem::GitLab,
        };
        plan::ci_file(system, source.install_command())
    });
    pipeline::formatted(files)
}

/// Says where the runtime comes from, as a crate that builds only here is a surprise elsewhere.
fn print_source(args: &NewCrateArgs, console: &mut Console) {
    if let Ok(source) = args.runtime.source(&args.dir) {
        console.print_line(&format!("\nkopf-runtime: {source}"));
        if !source.is_portable() {
            console.print_line(HINT);
        }
    }
}

/// Says where the release profile belongs: cargo ignores that of a member of a workspace.
fn print_profile_place(args: &NewCrateArgs, console: &mut Console) {
    if let Some(manifest) = workspace_manifest(&args.dir) {
        let manifest = manifest.display();
        console.print_line(&format!(
            "build profiles: those of {manifest}; `lto = \"thin\"`, `codegen-units = 1` and `strip = true` in its [profile.release] make the program smaller"
        ));
    }
}

fn prepare(
    args: &NewCrateArgs,
    console: &mut Console,
) -> Result<(CrateDraft, String), CommandStatus> {
    let name =
        operator_name(args.name.as_deref(), &args.dir).map_err(|message| console.fail(&message))?;
    let place = args.dir.display();
    match is_free(&args.dir) {
        Ok(true) => {}
        Ok(false) => {
            let message =
                format!("{place} is not empty; inside an operator crate, use `kopf-gen generate`");
            return Err(console.fail(&message));
        }
        Err(error) => return Err(console.fail(&format!("cannot read {place}: {error}"))),
    }
    let mut draft = CrateDraft::begin(&args.dir, &name, args.preset.initial_handlers());
    for hook in args.preset.hooks() {
        draft
            .add_hook(hook)
            .map_err(|error| console.fail_with(&error))?;
    }
    let entries = args.preset.entries();
    add_inputs(&mut draft, &args.crds, entries, args.fix.fix(), console)?;
    Ok((draft, name))
}

fn next_steps(dir: &Path, title: &str, has_crds: bool) -> String {
    let steps: &[&str] = if has_crds {
        &[
            "cargo test                              # on a real control plane, which starts by itself",
            "kubectl apply --server-side -k crds/    # on your cluster, or on one from `kopf-gen cluster up`",
        ]
    } else {
        &["kopf-gen generate FILE    # for each file with CustomResourceDefinitions"]
    };
    let (dir, steps) = (dir.display(), steps.join("\n  "));
    format!("\n{title}:\n  cd {dir}\n  {steps}\n  cargo run -- --dev")
}

// === impl Preset ===

impl Preset {
    /// The first entries of each kind.
    fn entries(self) -> InitialEntries {
        match self {
            Self::Minimal => InitialEntries {
                handlers: &["{on: create, fn: create}"],
                ..InitialEntries::default()
            },
            Self::Child => InitialEntries {
                children: &["v1/ConfigMap"],
                handlers: &["{on: reconcile, fn: reconcile}"],
                ..InitialEntries::default()
            },
            Self::Full => InitialEntries {
                handlers: &[
                    "{on: create, fn: create}",
                    "{on: update, fn: update}",
                    "{on: delete, fn: delete}",
                    "{on: resume, fn: resume}",
                    "{on: field, field: metadata.labels, fn: relabel}",
                    "{on: event, fn: observe}",
                    "{timer: check, interval: 1m}",
                    "{daemon: monitor}",
                ],
                indices: &["{index: by_label}"],
                children: &[],
                admission: &["{validate: validate}", "{mutate: set_defaults}"],
            },
        }
    }

    /// The first handlers of `operator.handlers`.
    fn hooks(self) -> &'static [&'static str] {
        match self {
            Self::Minimal | Self::Child => &[],
            Self::Full => &[
                "{startup: startup}",
                "{cleanup: cleanup}",
                "{login: login}",
                "{probe: probe}",
            ],
        }
    }

    /// The bodies of the handlers.
    fn initial_handlers(self) -> InitialHandlers {
        match self {
            Self::Minimal | Self::Full => InitialHandlers::Stubs,
            Self::Child => InitialHandlers::Children,
        }
    }
}
