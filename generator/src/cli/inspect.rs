//! Commands that look and tell: `validate`, `schema`, `rbac`, `completions` and `man`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _};

use super::draft::{Draft, Loaded};
use super::generate::find_root;
use super::report::Told;
use super::{Cli, Report, Status};
use crate::load::manifest;
use crate::model::rbac::{self, RbacRule};
use crate::plan;
use crate::suggest::did_you_mean;
use crate::view::deploy::RbacView;

/// Check kopf.yaml and the CRDs that it names, writing nothing
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// Print the permissions that the operator needs, each with its reason
#[derive(Debug, Args)]
pub(super) struct RbacArgs {
    /// Only say why this is needed, such as pods:watch or pods
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

pub(super) fn validate(args: &ValidateArgs, report: &mut Report) -> Status {
    match load(args.manifest.as_deref(), report) {
        Ok(Loaded {
            operator,
            sources,
            mut diagnostics,
        }) => {
            diagnostics.sort();
            report.print(&diagnostics, &sources, Told::Nothing);
            let handlers: usize = operator.kinds.iter().map(|kind| kind.handlers.len()).sum();
            let kinds = operator.kinds.len();
            report.say(&format!(
                "{} is valid: kinds: {kinds}, handlers: {handlers}",
                operator.name
            ));
            Status::Ok
        }
        Err(status) => status,
    }
}

pub(super) fn schema(report: &mut Report) -> Status {
    let schema = serde_json::to_string_pretty(&manifest::schema()).expect("a schema is JSON");
    print(&format!("{schema}\n"), report)
}

pub(super) fn rbac(args: &RbacArgs, report: &mut Report) -> Status {
    let operator = match load(args.manifest.as_deref(), report) {
        Ok(loaded) => loaded.operator,
        Err(status) => return status,
    };
    let Some(wanted) = &args.explain else {
        return print(&plan::text(&RbacView::new(&operator)), report);
    };
    let rules = rbac::rules(&operator);
    match explain(&rules, wanted) {
        Ok(text) => print(&text, report),
        Err(message) => report.fail(&message),
    }
}

pub(super) fn completions(args: &CompletionsArgs, report: &mut Report) -> Status {
    // Into memory first, where writing cannot fail; the library would panic.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kopf-gen", &mut script);
    print(&String::from_utf8_lossy(&script), report)
}

pub(super) fn man(args: &ManArgs, report: &mut Report) -> Status {
    let write = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir));
    match write {
        Ok(()) => Status::Ok,
        Err(error) => report.fail(&format!("cannot write to {}: {error}", args.dir.display())),
    }
}

fn load(manifest: Option<&Path>, report: &mut Report) -> Result<Loaded, Status> {
    let root = find_root(manifest).map_err(|message| report.fail(&message))?;
    Draft::open(&root)
        .map_err(|error| report.fail_with(&error))?
        .load(report)
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
            .unwrap_or_else(|| "`kopf-gen rbac` prints all".to_owned());
        return Err(format!(
            "the operator needs nothing of `{resource}`; {help}"
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
            "the operator does not need `{wanted}`; of {resource} it needs {verbs}"
        ))
    } else {
        Ok(grants)
    }
}

fn print(text: &str, report: &mut Report) -> Status {
    report.rest();
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Status::Ok,
        // Who reads no further has seen enough, as `head` has.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Status::Ok,
        Err(error) => report.fail(&format!("cannot write to standard output: {error}")),
    }
}
