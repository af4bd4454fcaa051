//! `kopf-gen types`: prints or writes the types of CustomResourceDefinitions, without an operator.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::console::{Console, PrintedNotes};
use super::crd_inputs::is_typed_by_hand;
use super::exit_status::CommandStatus;
use super::write_plan::{WriteMode, apply_plan, recover_interrupted_run};
use crate::diagnostic::{Diagnostics, Sources};
use crate::load::crd::NameFix;
use crate::load::input;
use crate::model::generated_types::ExistingType;
use crate::model::identifier::{InvalidTypeName, TypeName};
use crate::model::resource::{CustomResource, VersionChoice};
use crate::model::type_options::{Builtins, Options};
use crate::pipeline;
use crate::plan;
use crate::rust::{RustPath, RustType};
use crate::types::{self, TypesRequest};
use crate::write::{self, EditPolicy};

/// Print the Rust types of CustomResourceDefinitions
#[derive(Debug, Args)]
pub(super) struct TypesArgs {
    /// Files, folders or globs; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,
    /// Only this version; may be repeated, and may name a version that is not served
    #[arg(long = "version", value_name = "VERSION")]
    versions: Vec<String>,
    /// A file for one module, or a folder for one file per kind and version
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Overwrite files even if they were edited by hand
    #[arg(long)]
    force: bool,
    /// Correct the names of definitions that are not `<plural>.<group>`
    #[arg(long)]
    fix_names: bool,
    /// When to use the types of k8s-openapi
    #[arg(long, value_name = "WHEN", default_value = "exact")]
    builtin_types: BuiltinTypes,
    /// Name the type at a path, as in `spec.template=WorkerTemplate`
    #[arg(long, value_name = "PATH=NAME", value_parser = rename)]
    rename: Vec<(String, TypeName)>,
    /// Use another type at a path, as in `spec.created=k8s_openapi::jiff::Timestamp`
    #[arg(long, value_name = "PATH=TYPE", value_parser = replacement)]
    replace: Vec<(String, ExistingType)>,
    /// Derive another trait, for the type at a path or for all types
    #[arg(long, value_name = "[PATH=]TRAIT", value_parser = derive)]
    derive: Vec<(Option<String>, RustPath)>,
    /// Derive `schemars::JsonSchema` for all types
    #[arg(long)]
    json_schema: bool,
    /// Give enums a variant that keeps values unknown to the schema
    #[arg(long)]
    open_enums: bool,
    /// Give structs a `with_…` method per field
    #[arg(long)]
    builders: bool,
}

/// When to use the types of k8s-openapi.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BuiltinTypes {
    /// If every value that the schema allows is written as it was read
    Exact,
    /// Also if values are normalised, as times and quantities are
    Compatible,
    /// Never
    None,
}

pub(super) fn run(args: &TypesArgs, console: &mut Console) -> CommandStatus {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    if !is_typed_by_hand(&args.inputs) {
        console.begin_task("generating the types");
    }
    let ids = input::read(&args.inputs, &mut sources, &mut diagnostics);
    let request = args.request();
    let resources = types::resources(&sources, &ids, &request, &mut diagnostics);
    console.print_diagnostics(&diagnostics, &sources, PrintedNotes::None);
    if diagnostics.has_errors() {
        return CommandStatus::Invalid;
    }
    args.write(&resources, &sources, console)
}

impl TypesArgs {
    fn request(&self) -> TypesRequest {
        TypesRequest {
            versions: if self.versions.is_empty() {
                VersionChoice::Served
            } else {
                VersionChoice::Named(self.versions.iter().cloned().collect())
            },
            names: if self.fix_names {
                NameFix::Correct
            } else {
                NameFix::Report
            },
            options: self.options(),
        }
    }

    fn options(&self) -> Options {
        let mut options = Options {
            names: self.rename.iter().cloned().collect(),
            replacements: self.replace.iter().cloned().collect(),
            builtins: match self.builtin_types {
                BuiltinTypes::Exact => Builtins::Exact,
                BuiltinTypes::Compatible => Builtins::Compatible,
                BuiltinTypes::None => Builtins::None,
            },
            open_enums: self.open_enums,
            builders: self.builders,
            ..Options::default()
        };
        for (path, derive) in &self.derive {
            match path {
                Some(path) => options
                    .derives
                    .entry(path.clone())
                    .or_default()
                    .push(derive.clone()),
                None => options.derives_everywhere.push(derive.clone()),
            }
        }
        if self.json_schema {
            options
                .derives_everywhere
                .push(RustPath::external("schemars::JsonSchema"));
        }
        options
    }

    /// Prints the types, or brings a file or a folder up to date with them.
    fn write(
        &self,
        resources: &[CustomResource],
        sources: &Sources,
        console: &mut Console,
    ) -> CommandStatus {
        let edited = if self.force {
            EditPolicy::Overwrite
        } else {
            EditPolicy::Keep
        };
        console.begin_task("generating the types");
        match &self.output {
            None => {
                let text = pipeline::text(plan::types_module(resources, sources));
                console.clear_progress();
                match io::stdout().lock().write_all(text.as_bytes()) {
                    Ok(()) => CommandStatus::Ok,
                    Err(error) => {
                        console.fail(&format!("cannot write to standard output: {error}"))
                    }
                }
            }
            Some(file) if file.extension().is_some_and(|extension| extension == "rs") => {
                let text = pipeline::text(plan::types_module(resources, sources));
                match write::write_module(file, &text, edited) {
                    Ok(()) => CommandStatus::Ok,
                    Err(error) => console.fail_with(&error),
                }
            }
            Some(folder) => {
                let files = pipeline::formatted(plan::types(resources, sources));
                if let Err(status) = recover_interrupted_run(folder, WriteMode::WRITE, console) {
                    return status;
                }
                apply_plan(folder, &files.into(), edited, WriteMode::WRITE, console)
            }
        }
    }
}

fn rename(text: &str) -> Result<(String, TypeName), String> {
    let (path, name) = pair(text)?;
    let name = name
        .parse()
        .map_err(|error: InvalidTypeName| error.to_string())?;
    Ok((path, name))
}

fn replacement(text: &str) -> Result<(String, ExistingType), String> {
    let (path, ty) = pair(text)?;
    let rust = RustType::parse(ty).map_err(|error| format!("`{ty}` is not allowed: {error}"))?;
    let known = ExistingType {
        rust,
        default: false,
    };
    Ok((path, known))
}

fn derive(text: &str) -> Result<(Option<String>, RustPath), String> {
    let (path, name) = match text.split_once('=') {
        Some((path, name)) => (Some(path.to_owned()), name),
        None => (None, text),
    };
    let derive = RustPath::parse(name).map_err(|error| format!("`{name}`: {error}"))?;
    Ok((path, derive))
}

fn pair(text: &str) -> Result<(String, &str), String> {
    let (path, value) = text
        .split_once('=')
        .ok_or("a `=` is missing after the path")?;
    Ok((path.to_owned(), value))
}
