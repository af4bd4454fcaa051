//! Commands that leave the crate alone: `validate`, `rbac`, `completions` and `man`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use super::console::{Console, PrintedNotes};
use super::crate_folder::find_root;
use super::draft::{CrateDraft, LoadedOperator};
use super::earlier_state::{self, EarlierState};
use super::exit_status::CommandStatus;
use crate::compatibility::{self, CurrentDefinitions};
use crate::diagnostic::{Diagnostics, Sources};
use crate::load::yaml::{self, Dialect};
use crate::model::operator::Operator;
use crate::model::rbac::{self, RbacRule};
use crate::plan::{CRD_FOLDER, DeploySource, FileSource};
use crate::project::read_user_files;
use crate::suggest::did_you_mean;
use crate::{applied, pipeline};

/// Check kopf.yaml and the CRDs that it names; write nothing
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// List the changes of CRDs since this revision in git that break stored objects or clients
    #[arg(long, value_name = "REV")]
    against: Option<String>,
}

/// Print the permissions that the operator needs, each with its reason
#[derive(Debug, Args)]
pub(super) struct RbacArgs {
    /// Print only the reasons for this permission, such as pods:watch or pods
    #[arg(long, value_name = "RESOURCE[:VERB]")]
    explain: Option<String>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// Print the completions of a shell
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Write the manual pages
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The folder for them
    dir: PathBuf,
}

pub(super) fn validate(args: &ValidateArgs, console: &mut Console) -> CommandStatus {
    let root = match find_root(args.manifest.as_deref()) {
        Ok(root) => root,
        Err(message) => return console.fail(&message),
    };
    match load_from(&root, console) {
        Ok(LoadedOperator {
            operator,
            mut sources,
            mut diagnostics,
        }) => {
            match read_user_files(&root, &mut sources) {
                Ok(user) => applied::check(&operator, &user, &mut diagnostics),
                Err(error) => return console.fail_with(&error),
            }
            if let Some(revision) = &args.against {
                let compared = compare(&root, revision, &operator, &mut sources, &mut diagnostics);
                if let Err(error) = compared {
                    return console.fail_with(&error);
                }
            }
            diagnostics.sort();
            if diagnostics.has_errors() {
                console.print_diagnostics(&diagnostics, &sources, PrintedNotes::None);
                return CommandStatus::Invalid;
            }
            console.print_diagnostics(&diagnostics, &sources, PrintedNotes::None);
            let handlers: usize = operator.kinds.iter().map(|kind| kind.handlers.len()).sum();
            let kinds = operator.kinds.len();
            console.print_line(&format!(
                "{} is valid: kinds: {kinds}, handlers: {handlers}",
                operator.name
            ));
            CommandStatus::Ok
        }
        Err(status) => status,
    }
}

/// Compares the definitions of the operator with those of a revision.
fn compare(
    root: &Path,
    revision: &str,
    operator: &Operator,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Result<(), earlier_state::Error> {
    let state = EarlierState::find(root, revision)?;
    let mut paths = state.files(CRD_FOLDER)?;
    for file in &operator.crd_files {
        paths.extend(state.files(&file.path)?);
    }
    paths.sort();
    paths.dedup();
    // Errors in an earlier text are not of interest any more.
    let mut ignored = Diagnostics::new();
    let mut earlier = Vec::new();
    for path in paths {
        let text = state.read(&path)?;
        let source = sources.add(format!("{revision}:{path}"), text);
        earlier.extend(yaml::parse(
            sources,
            source,
            Dialect::Kubernetes,
            &mut ignored,
        ));
    }
    let files = operator.crd_files.iter().map(|file| {
        let source = sources.add(file.path.as_str(), file.text.clone());
        let documents = yaml::parse(sources, source, Dialect::Kubernetes, &mut ignored);
        (source, documents)
    });
    let files: Vec<_> = files.collect();
    let current: Vec<_> = files
        .iter()
        .map(|(source, documents)| CurrentDefinitions {
            source: *source,
            documents,
        })
        .collect();
    compatibility::compare(&earlier, &current, diagnostics);
    Ok(())
}

pub(super) fn rbac(args: &RbacArgs, console: &mut Console) -> CommandStatus {
    let operator = match load(args.manifest.as_deref(), console) {
        Ok(loaded) => loaded.operator,
        Err(status) => return status,
    };
    let Some(wanted) = &args.explain else {
        let source = FileSource::Deploy(DeploySource::Rbac(&operator));
        return print(&pipeline::text(source), console);
    };
    let rules = rbac::rules(&operator);
    match explain(&rules, wanted) {
        Ok(text) => print(&text, console),
        Err(message) => console.fail(&message),
    }
}

pub(super) fn completions(
    args: &CompletionsArgs,
    command: &mut clap::Command,
    console: &mut Console,
) -> CommandStatus {
    // Into memory first: the library panics if writing fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "kopf-gen", &mut script);
    print(&String::from_utf8_lossy(&script), console)
}

pub(super) fn man(args: &ManArgs, command: clap::Command, console: &mut Console) -> CommandStatus {
    let write = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(command, &args.dir));
    match write {
        Ok(()) => CommandStatus::Ok,
        Err(error) => console.fail(&format!("cannot write to {}: {error}", args.dir.display())),
    }
}

fn load(manifest: Option<&Path>, console: &mut Console) -> Result<LoadedOperator, CommandStatus> {
    let root = find_root(manifest).map_err(|message| console.fail(&message))?;
    load_from(&root, console)
}

fn load_from(root: &Path, console: &mut Console) -> Result<LoadedOperator, CommandStatus> {
    CrateDraft::open(root)
        .map_err(|error| console.fail_with(&error))?
        .load(console)
}

fn explain(rules: &[RbacRule], wanted: &str) -> Result<String, String> {
    let (resource, verb) = match wanted.split_once(':') {
        Some((resource, verb)) => (resource, Some(verb)),
        None => (wanted, None),
    };
    let of_resource: Vec<_> = rules
        .iter()
        .filter(|rule| rule.resources.iter().any(|it| it == resource || it == "*"))
        .collect();
    if of_resource.is_empty() {
        let known = rules.iter().flat_map(|rule| &rule.resources);
        let known = known.map(String::as_str);
        let help = did_you_mean(resource, known)
            .unwrap_or_else(|| "`kopf-gen rbac` prints all permissions".to_owned());
        return Err(format!(
            "the operator needs no permission on `{resource}`; {help}"
        ));
    }
    let grants: String = of_resource
        .iter()
        .flat_map(|rule| &rule.verbs)
        .filter(|grant| verb.is_none_or(|verb| grant.verb == verb))
        .map(|grant| format!("{resource}:{} because: {}\n", grant.verb, grant.reason))
        .collect();
    if grants.is_empty() {
        let mut verbs: Vec<&str> = Vec::new();
        for grant in of_resource.iter().flat_map(|rule| &rule.verbs) {
            if !verbs.contains(&grant.verb) {
                verbs.push(grant.verb);
            }
        }
        let verbs = verbs.join(", ");
        Err(format!(
            "the operator does not need `{wanted}`; on {resource} it needs {verbs}"
        ))
    } else {
        Ok(grants)
    }
}

pub(super) fn print(text: &str, console: &mut Console) -> CommandStatus {
    console.clear_progress();
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => CommandStatus::Ok,
        // The reader has closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => CommandStatus::Ok,
        Err(error) => console.fail(&format!("cannot write to standard output: {error}")),
    }
}
