//! The command line of kopf-gen: parses the arguments and runs one command.

mod add;
mod add_args;
mod cluster;
mod console;
mod crate_folder;
mod crd_inputs;
mod definition_fix;
mod dev;
mod draft;
mod earlier_state;
mod exit_status;
mod explain;
mod generate;
mod handler_options;
mod hook;
mod inspect;
mod manifest_edit;
mod manifest_entry;
mod new;
mod old_layout;
mod output_args;
mod progress;
mod readonly_commands;
mod remove;
mod runtime;
mod runtime_args;
mod schema;
mod types;
mod upgrade;
mod watch;
mod write_plan;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use self::console::Console;
use self::exit_status::EXIT_CODES;
use self::output_args::OutputArgs;

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
    Validate(readonly_commands::ValidateArgs),
    Rbac(readonly_commands::RbacArgs),
    Types(types::TypesArgs),
    Runtime(runtime::RuntimeCommandArgs),
    Dev(dev::DevArgs),
    Upgrade(upgrade::UpgradeArgs),
    Cluster(cluster::ClusterArgs),
    Inspect(inspect::InspectCommandArgs),
    Unstick(inspect::UnstickCommandArgs),
    Explain(explain::ExplainArgs),
    Schema(schema::SchemaArgs),
    Completions(readonly_commands::CompletionsArgs),
    Man(readonly_commands::ManArgs),
}

/// Parses the arguments, runs the command and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    // A process of a cluster, which this program has started.
    if let Some(outcome) = kopf_cluster::subcommand::run(std::env::args_os().skip(1)) {
        return match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                // There is nowhere else to report to.
                let _ = writeln!(std::io::stderr(), "{}", failure.message());
                ExitCode::FAILURE
            }
        };
    }
    let cli = Cli::parse();
    let mut console = Console::new(
        cli.output.format,
        cli.output.style(),
        cli.output.verbosity(),
    );
    let status = match cli.command {
        Command::Inspect(args) => return inspect::inspect(&args),
        Command::Unstick(args) => return inspect::unstick(&args),
        Command::New(args) => new::run(&args, &mut console),
        Command::Generate(args) => generate::run(&args, &mut console),
        Command::Add(args) => add::run(&args, &mut console),
        Command::Remove(args) => remove::run(&args, &mut console),
        Command::Validate(args) => readonly_commands::validate(&args, &mut console),
        Command::Rbac(args) => readonly_commands::rbac(&args, &mut console),
        Command::Schema(args) => schema::run(&args, &mut console),
        Command::Completions(args) => {
            readonly_commands::completions(&args, &mut Cli::command(), &mut console)
        }
        Command::Man(args) => readonly_commands::man(&args, Cli::command(), &mut console),
        Command::Types(args) => types::run(&args, &mut console),
        Command::Runtime(args) => runtime::run(&args, &mut console),
        Command::Dev(args) => dev::run(&args, &mut console),
        Command::Upgrade(args) => upgrade::run(&args, &mut console),
        Command::Cluster(args) => cluster::run(&args, &mut console),
        Command::Explain(args) => explain::run(&args),
    };
    status.into()
}
