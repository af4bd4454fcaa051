//! The command line of kopf-gen: parses the arguments and runs one command.

mod add;
mod add_args;
mod apply;
mod console;
mod crate_folder;
mod crd_inputs;
mod draft;
mod entry;
mod explain;
mod generate;
mod hook;
mod inspect;
mod manifest_edit;
mod new;
mod output_args;
mod progress;
mod remove;
mod runtime_source;
mod status;
mod types;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use self::console::Console;
use self::output_args::OutputArgs;
use self::status::EXIT_CODES;

/// Turns CustomResourceDefinitions into typed Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "kopf-gen", after_help = EXIT_CODES, version)]
struct Cli {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    New(new::NewCrateArgs),
    Generate(generate::GenerateArgs),
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
    Validate(inspect::ValidateArgs),
    Rbac(inspect::RbacArgs),
    Types(types::TypesArgs),
    Explain(explain::ExplainArgs),
    /// Print the JSON Schema of kopf.yaml, for editors
    Schema,
    Completions(inspect::CompletionsArgs),
    Man(inspect::ManArgs),
}

/// Parses the arguments, runs the command and returns its exit code.
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
        Command::Add(args) => add::run(&args, &mut console),
        Command::Remove(args) => remove::run(&args, &mut console),
        Command::Validate(args) => inspect::validate(&args, &mut console),
        Command::Rbac(args) => inspect::rbac(&args, &mut console),
        Command::Schema => inspect::schema(&mut console),
        Command::Completions(args) => {
            inspect::completions(&args, &mut Cli::command(), &mut console)
        }
        Command::Man(args) => inspect::man(&args, Cli::command(), &mut console),
        Command::Types(args) => types::run(&args, &mut console),
        Command::Explain(args) => explain::run(&args),
    };
    status.into()
}
