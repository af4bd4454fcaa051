//! The command line: one command per figure.

mod crates;
mod operator;
mod ours;
mod peer;
mod roots;
mod versus;

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::corpus::{Missing, Part};
use crate::generated::Which;
use crate::meter;
use crate::roundtrip::{Case, Program, Tally};
use crate::scratch::{Judge, Module, Scratch, Supply, Verdict};

/// Measures the generated types over a folder of real CustomResourceDefinitions.
#[derive(Debug, Parser)]
#[command(name = "kopf-corpus")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make synthetic objects of every version, and tell which schemas have none
    Synthesise(Selection),
    /// Make the types of every file in one process: failures, lines, CPU seconds, memory
    Generate(Selection),
    /// Make the types of every file twice, in opposite orders, and compare the bytes
    Determinism(Selection),
    /// Compile the types of all files together and tell which files are complained of
    Check(CheckArgs),
    /// Send samples and synthetic objects through the types and back
    Roundtrip(Selection),
    /// Run kopium over the same files: failures, lines, CPU seconds, and with --judge compile cost
    Kopium(KopiumArgs),
    /// Make an operator for each file, and tell which are refused and why
    New(NewArgs),
    /// Make an operator for ten definitions, then again with nothing to do: CPU seconds
    Operator,
    /// Compile the type of whole objects with its traits written out, and derived by kube
    Roots,
    /// Both sides in one run: lines, CPU seconds to generate, and what compiling a part of them costs
    Versus(VersusArgs),
    #[command(hide = true)]
    Write(WriteArgs),
    #[command(name = meter::SUBCOMMAND, hide = true)]
    Metered(MeteredArgs),
}

/// Which files to look at; all of them unless said otherwise.
#[derive(Clone, Copy, Debug, Args)]
struct Selection {
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
    /// Also send objects through its types
    #[arg(long)]
    roundtrip: bool,
    /// Also compile what it wrote
    #[arg(long, value_name = "JUDGE")]
    judge: Option<Judge>,
}

#[derive(Debug, Args)]
struct VersusArgs {
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
    /// Who judges
    #[arg(long, value_name = "JUDGE", default_value = "check")]
    judge: Judge,
}

#[derive(Debug, Args)]
struct NewArgs {
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

/// Why a command could not finish.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "there is no kopf-gen beside this program: `cargo build -p kopf-gen` makes it, with \
         `--release` if this was"
    )]
    Unbuilt,
    #[error("{0} files have no types")]
    Failures(usize),
    #[error("{0} files have types with complaints")]
    Complaints(usize),
    #[error("objects of {0} versions do not come back as they were")]
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

/// Parses the arguments, runs the command, and says how it ended.
#[must_use]
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do if the terminal is gone as well.
            let _ = writeln!(io::stderr(), "kopf-corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Synthesise(selection) => ours::synthesise(selection)?,
        Command::Generate(selection) => ours::generate(selection)?,
        Command::Determinism(selection) => ours::determinism(selection)?,
        Command::Check(arguments) => ours::check(&arguments)?,
        Command::Roundtrip(selection) => ours::roundtrip(selection)?,
        Command::Kopium(arguments) => peer::kopium(&arguments)?,
        Command::New(arguments) => crates::new(&arguments)?,
        Command::Operator => operator::operator()?,
        Command::Roots => roots::roots()?,
        Command::Versus(arguments) => versus::versus(&arguments)?,
        Command::Write(arguments) => ours::write(&arguments)?,
        Command::Metered(arguments) => {
            let status = meter::run_inner(&arguments.report, &arguments.command)?;
            return Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles the cases, sends their objects through, and tells what became of them.
fn travel(supply: &Supply, modules: &[Module], cases: Vec<Case>) -> Result<(), Error> {
    let scratch = Scratch::create("roundtrip", supply)?;
    let program = Program::build(&scratch, modules, cases)?;
    let results = program.run()?;
    for (case, outcomes) in &results {
        for outcome in outcomes.iter().filter(|outcome| !outcome.fate.is_kept()) {
            say(format_args!(
                "{} {} {}: {}",
                case.stem, case.version.name, outcome.label, outcome.fate
            ))?;
        }
    }
    for (title, tally) in Tally::of(&results) {
        say(format_args!("{title}: {tally}"))?;
    }
    let changed = results
        .iter()
        .filter(|(_, outcomes)| outcomes.iter().any(|outcome| !outcome.fate.is_kept()))
        .count();
    if changed == 0 {
        Ok(())
    } else {
        Err(Error::Changed(changed))
    }
}

fn pronounce(verdict: &Verdict, modules: usize) -> Result<(), Error> {
    for (module, complaints) in &verdict.complaints {
        for complaint in complaints.iter().take(3) {
            say(format_args!(
                "{module}: {}\n{}",
                complaint.code, complaint.rendered
            ))?;
        }
    }
    say(format_args!(
        "{} of {modules} modules pass; {:.1} CPU s, {:.1} s on the wall, {} MB at the peak",
        modules - verdict.complaints.len().min(modules),
        verdict.cost.cpu.as_secs_f64(),
        verdict.cost.wall.as_secs_f64(),
        verdict.cost.megabytes(),
    ))
}

fn say(line: fmt::Arguments<'_>) -> Result<(), Error> {
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}

// === impl Selection ===

impl Selection {
    fn part(self) -> Part {
        match (self.every, self.drawn) {
            (Some(step), _) => Part::Every(step),
            (None, Some(count)) => Part::Drawn(count),
            (None, None) => Part::All,
        }
    }

    fn which(self) -> Which {
        if self.one_version {
            Which::Preferred
        } else {
            Which::Served
        }
    }

    fn arguments(self) -> Vec<String> {
        let mut arguments = match self.part() {
            Part::All => Vec::new(),
            Part::Every(step) => vec![format!("--every={step}")],
            Part::Drawn(count) => vec![format!("--drawn={count}")],
        };
        if self.one_version {
            arguments.push("--one-version".to_owned());
        }
        arguments
    }
}
