//! The command line: arguments become typed requests, results become text and an exit status.

mod add_args;
mod change;
mod console;
mod draft;
mod entry;
mod explain;
mod generate;
mod hook;
mod inspect;
mod new;
mod progress;
mod runtime_source;
mod types;
mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use console::{Console, OutputVerbosity};

use crate::diagnostic::Style;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the input is invalid, or a file could not be read or written
  2  the command line is wrong
  3  --check: something is out of date
  4  a generated file was edited by hand and is not overwritten";

/// Above the options that all commands have, so that they are not among those of one.
const GLOBAL: &str = "For all commands";

/// Turns CustomResourceDefinitions into typed Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "kopf-gen", after_help = EXIT_CODES, version)]
pub struct Cli {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    command: Command,
}

/// How to talk to the user, for all commands.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// How to print problems
    #[arg(long, global = true, value_name = "FORMAT", default_value = "human", help_heading = GLOBAL)]
    pub format: OutputFormat,
    /// Whether to colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL)]
    pub color: Color,
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    pub quiet: bool,
    /// Print all that there is to say, also what was told before
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub verbose: bool,
}

/// How to print problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text with snippets and carets
    Human,
    /// One JSON object per line
    Json,
}

/// Whether to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    New(new::NewCrateArgs),
    Generate(generate::GenerateArgs),
    Add(change::AddArgs),
    Remove(change::RemoveArgs),
    Validate(inspect::ValidateArgs),
    Rbac(inspect::RbacArgs),
    Types(types::TypesArgs),
    Explain(explain::ExplainArgs),
    /// Print the JSON Schema of kopf.yaml, for editors
    Schema,
    Completions(inspect::CompletionsArgs),
    Man(inspect::ManArgs),
}

/// How a command ended; each has its own exit code, 2 being clap's for wrong usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// Done.
    Ok,
    /// The input is invalid, or something could not be read or written.
    Invalid,
    /// The command line makes no sense.
    Usage,
    /// `--check` found files that are not up to date.
    Drift,
    /// A generated file was edited by hand and is not overwritten.
    Edited,
}

/// Parses the arguments, runs the command and says how it ended.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut console = Console::new(
        cli.output.format,
        cli.output.style(),
        cli.output.verbosity(),
    );
    let status = match cli.command {
        Command::New(args) => new::run(&args, &mut console),
        Command::Generate(args) => generate::run(&args, &mut console),
        Command::Add(args) => change::add(&args, &mut console),
        Command::Remove(args) => change::remove(&args, &mut console),
        Command::Validate(args) => inspect::validate(&args, &mut console),
        Command::Rbac(args) => inspect::rbac(&args, &mut console),
        Command::Schema => inspect::schema(&mut console),
        Command::Completions(args) => inspect::completions(&args, &mut console),
        Command::Man(args) => inspect::man(&args, &mut console),
        Command::Types(args) => types::run(&args, &mut console),
        Command::Explain(args) => explain::run(&args),
    };
    status.into()
}

// === impl OutputArgs ===

impl OutputArgs {
    fn style(&self) -> Style {
        let colored = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::io::stderr().is_terminal()
            }
        };
        if colored {
            Style::Colored
        } else {
            Style::Plain
        }
    }

    fn verbosity(&self) -> OutputVerbosity {
        match (self.quiet, self.verbose) {
            (true, _) => OutputVerbosity::Quiet,
            (_, true) => OutputVerbosity::Verbose,
            _ => OutputVerbosity::Normal,
        }
    }
}

// === impl CommandStatus ===

impl From<CommandStatus> for ExitCode {
    fn from(status: CommandStatus) -> Self {
        Self::from(match status {
            CommandStatus::Ok => 0,
            CommandStatus::Invalid => 1,
            CommandStatus::Usage => 2,
            CommandStatus::Drift => 3,
            CommandStatus::Edited => 4,
        })
    }
}
