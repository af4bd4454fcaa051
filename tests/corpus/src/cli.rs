//! The command line: one command per figure.

mod kopium;
mod new;
mod operator;
mod roots;
mod types;
mod versus;

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::command_cost;
use crate::corpus::{Corpus, CorpusError, Subset};
use crate::generated::VersionSubset;
use crate::roundtrip::{RoundtripCase, RoundtripCounts, RoundtripProgram};
use crate::scratch_crate::{
    CargoCommand, CheckReport, CrateDependencies, GeneratedModule, ScratchCrate,
};

/// Measures the generated types over a folder of CustomResourceDefinitions.
#[derive(Debug, Parser)]
#[command(name = "kopf-corpus")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make synthetic objects of every version, and list the schemas without a valid one
    Synthesise(Selection),
    /// Make the types of every file in one process: failures, lines, CPU seconds, memory
    Generate(Selection),
    /// Make the types of every file twice, in opposite orders, and compare the bytes
    Determinism(Selection),
    /// Compile the types of all files together and list the files with errors
    Check(CheckArgs),
    /// Decode and encode samples and synthetic objects with the types
    Roundtrip(Selection),
    /// Run kopium over the same files: failures, lines, CPU seconds, and with --judge compile cost
    Kopium(KopiumArgs),
    /// Make an operator for each file, and list those with errors
    New(NewCratesArgs),
    /// Make an operator for ten definitions, then again with nothing to do: CPU seconds
    Operator(CorpusArgs),
    /// Compile the type of whole objects with its traits written out, and derived by kube
    Roots,
    /// kopf-gen and kopium in one run: lines, CPU seconds to generate, cost of compiling a subset
    Versus(VersusArgs),
    #[command(hide = true)]
    Write(WriteArgs),
    #[command(name = command_cost::SUBCOMMAND, hide = true)]
    Metered(MeteredArgs),
}

/// The definitions to measure.
#[derive(Clone, Debug, Args)]
struct CorpusArgs {
    /// The folder of the definitions, `*.yaml`; samples are in `samples` beside it
    #[arg(long, value_name = "FOLDER", env = "KOPF_CORPUS")]
    corpus: PathBuf,
}

/// The files to use; all by default.
#[derive(Clone, Debug, Args)]
struct Selection {
    #[command(flatten)]
    corpus: CorpusArgs,
    /// Each N-th file
    #[arg(long, value_name = "N", conflicts_with = "drawn")]
    every: Option<usize>,
    /// N files, drawn by a fixed seed
    #[arg(long, value_name = "N")]
    drawn: Option<usize>,
    /// Only the version that clients prefer, as kopium does, instead of all served ones
    #[arg(long)]
    one_version: bool,
}

#[derive(Debug, Args)]
struct KopiumArgs {
    #[command(flatten)]
    selection: Selection,
    /// Where kopium is installed, or will be
    #[arg(long, value_name = "FOLDER", env = "KOPIUM_ROOT")]
    root: Option<PathBuf>,
    /// Also decode and encode objects with its types
    #[arg(long)]
    roundtrip: bool,
    /// Also compile what it wrote
    #[arg(long = "judge", value_name = "JUDGE")]
    cargo: Option<CargoCommand>,
}

#[derive(Debug, Args)]
struct VersusArgs {
    #[command(flatten)]
    corpus: CorpusArgs,
    /// How many files to compile, drawn by a fixed seed
    #[arg(long, value_name = "N", default_value_t = 100)]
    drawn: usize,
    /// Where kopium is installed, or will be
    #[arg(long, value_name = "FOLDER", env = "KOPIUM_ROOT")]
    root: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    selection: Selection,
    /// The cargo command to run
    #[arg(long = "judge", value_name = "JUDGE", default_value = "check")]
    cargo: CargoCommand,
}

#[derive(Debug, Args)]
struct NewCratesArgs {
    #[command(flatten)]
    selection: Selection,
    /// One preset for each file, in turn, instead of all of them
    #[arg(long)]
    in_turn: bool,
    /// Also compile all crates and their tests, with clippy's default lints as errors
    #[arg(long)]
    compile: bool,
}

#[derive(Debug, Args)]
struct WriteArgs {
    #[command(flatten)]
    selection: Selection,
    folder: PathBuf,
}

#[derive(Debug, Args)]
struct MeteredArgs {
    report: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// The reasons why a command failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "there is no kopf-gen beside this program: `cargo build -p kopf-gen` makes it, with \
         `--release` if this was"
    )]
    Unbuilt,
    #[error("the folder has no {0}.yaml, which this command measures")]
    MissingDefinition(&'static str),
    #[error("{0} files have no types")]
    Failures(usize),
    #[error("the types of {0} files do not compile")]
    CompilerErrors(usize),
    #[error("the types change objects of {0} versions")]
    Changed(usize),
    #[error("the types of {0} files are not the same twice")]
    Different(usize),
    #[error("{0} crates do not compile without a warning")]
    Refused(usize),
}

/// The kopf-gen that was built beside this program.
fn generator() -> Result<PathBuf, Error> {
    let program = env::current_exe()?.with_file_name("kopf-gen");
    program.exists().then_some(program).ok_or(Error::Unbuilt)
}

/// Parses the arguments, runs the command, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            // There is nowhere else to report to.
            let _ = writeln!(io::stderr(), "kopf-corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Synthesise(selection) => types::synthesise(&selection)?,
        Command::Generate(selection) => types::generate(&selection)?,
        Command::Determinism(selection) => types::determinism(&selection)?,
        Command::Check(arguments) => types::check(&arguments)?,
        Command::Roundtrip(selection) => types::roundtrip(&selection)?,
        Command::Kopium(arguments) => kopium::kopium(&arguments)?,
        Command::New(arguments) => new::new(&arguments)?,
        Command::Operator(arguments) => operator::operator(&arguments)?,
        Command::Roots => roots::roots()?,
        Command::Versus(arguments) => versus::versus(&arguments)?,
        Command::Write(arguments) => types::write(&arguments)?,
        Command::Metered(arguments) => {
            let status = command_cost::run_inner(&arguments.report, &arguments.command)?;
            return Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles the cases, decodes and encodes their objects, and prints the results.
fn run_roundtrip(
    dependencies: &CrateDependencies,
    modules: &[GeneratedModule],
    cases: Vec<RoundtripCase>,
) -> Result<(), Error> {
    let scratch = ScratchCrate::create("roundtrip", dependencies)?;
    let program = RoundtripProgram::build(&scratch, modules, cases)?;
    let results = program.run()?;
    for (case, outcomes) in &results {
        for outcome in outcomes
            .iter()
            .filter(|outcome| !outcome.result.is_identical())
        {
            print(format_args!(
                "{} {} {}: {}",
                case.stem, case.version.name, outcome.origin, outcome.result
            ))?;
        }
    }
    for (title, counts) in RoundtripCounts::of(&results) {
        print(format_args!("{title}: {counts}"))?;
    }
    let changed = results
        .iter()
        .filter(|(_, outcomes)| {
            outcomes
                .iter()
                .any(|outcome| !outcome.result.is_identical())
        })
        .count();
    if changed == 0 {
        Ok(())
    } else {
        Err(Error::Changed(changed))
    }
}

fn print_report(report: &CheckReport, modules: usize) -> Result<(), Error> {
    for (module, errors) in &report.errors {
        for error in errors.iter().take(3) {
            print(format_args!("{module}: {}\n{}", error.code, error.rendered))?;
        }
    }
    print(format_args!(
        "{} of {modules} modules pass; {:.1} CPU s, {:.1} s on the wall, {} MB at the peak",
        modules - report.errors.len().min(modules),
        report.cost.cpu.as_secs_f64(),
        report.cost.wall.as_secs_f64(),
        report.cost.megabytes(),
    ))
}

fn print(line: fmt::Arguments<'_>) -> Result<(), Error> {
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}

// === impl CorpusArgs ===

impl CorpusArgs {
    fn open(&self) -> Result<Corpus, CorpusError> {
        Corpus::open(&self.corpus)
    }

    /// The same arguments for a copy of this program.
    fn arguments(&self) -> Vec<OsString> {
        vec!["--corpus".into(), self.corpus.clone().into()]
    }
}

// === impl Selection ===

impl Selection {
    fn subset(&self) -> Subset {
        match (self.every, self.drawn) {
            (Some(step), _) => Subset::Every(step),
            (None, Some(count)) => Subset::Drawn(count),
            (None, None) => Subset::All,
        }
    }

    fn choice(&self) -> VersionSubset {
        if self.one_version {
            VersionSubset::Preferred
        } else {
            VersionSubset::Served
        }
    }

    fn arguments(&self) -> Vec<OsString> {
        let mut arguments = self.corpus.arguments();
        match self.subset() {
            Subset::All => {}
            Subset::Every(step) => arguments.push(format!("--every={step}").into()),
            Subset::Drawn(count) => arguments.push(format!("--drawn={count}").into()),
        }
        if self.one_version {
            arguments.push("--one-version".into());
        }
        arguments
    }
}
