//! The command line of an operator, and what it asks for.

mod webhooks;

use clap::{Args, Parser, Subcommand, ValueEnum};

use self::webhooks::WebhookArgs;

/// The whole command line; without a command the operator runs.
#[derive(Debug, Parser)]
#[command(disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator (this is the default)
    Run(RunArgs),
    /// Print the CustomResourceDefinitions that the operator handles
    Crd,
}

/// How the operator is to run.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    /// Serve this namespace only; may be given several times
    #[arg(
        short,
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "KOPF_RUN_NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(super) namespace: Vec<String>,

    /// Serve the whole cluster
    #[arg(short = 'A', long, env = "KOPF_RUN_ALL_NAMESPACES")]
    pub(super) all_namespaces: bool,

    /// Run on a developer's machine, ahead of an operator in the cluster
    #[arg(long, env = "KOPF_RUN_DEV")]
    pub(super) dev: bool,

    /// Log what the operator does in detail
    #[arg(short, long, env = "KOPF_RUN_VERBOSE", conflicts_with = "quiet")]
    verbose: bool,

    /// Log everything, with the libraries' messages
    #[arg(short, long, env = "KOPF_RUN_DEBUG", conflicts_with = "quiet")]
    debug: bool,

    /// Log warnings and errors only
    #[arg(short, long, env = "KOPF_RUN_QUIET")]
    quiet: bool,

    /// How log lines look
    #[arg(long, value_enum, default_value_t = LogFormat::Full, env = "KOPF_RUN_LOG_FORMAT")]
    pub(super) log_format: LogFormat,

    #[command(flatten)]
    pub(super) webhooks: WebhookArgs,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// Time, level and message
    Full,
    /// The message only
    Plain,
    /// One JSON object a line
    Json,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
    Debug,
}

/// What the user wants the process to do.
#[derive(Debug)]
pub(super) enum Request {
    Run(RunArgs),
    PrintCrds,
}

impl From<Cli> for Request {
    fn from(cli: Cli) -> Self {
        match cli.command {
            None => Self::Run(cli.run),
            Some(Command::Run(args)) => Self::Run(args),
            Some(Command::Crd) => Self::PrintCrds,
        }
    }
}

impl RunArgs {
    pub(super) fn verbosity(&self) -> Verbosity {
        match self {
            Self { quiet: true, .. } => Verbosity::Quiet,
            Self { debug: true, .. } => Verbosity::Debug,
            Self { verbose: true, .. } => Verbosity::Verbose,
            _ => Verbosity::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn request(line: &[&str]) -> Request {
        Cli::try_parse_from([&["operator"], line].concat())
            .unwrap()
            .into()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn running_is_the_default_and_takes_the_same_options() {
        for line in [
            &["-n", "a", "-n", "b", "-v"][..],
            &["run", "-n", "a,b", "-v"],
        ] {
            let Request::Run(args) = request(line) else {
                panic!("{line:?} does not run");
            };
            assert_eq!(args.namespace, ["a", "b"]);
            assert_eq!(args.verbosity(), Verbosity::Verbose);
        }
    }

    #[test]
    fn the_whole_cluster_and_a_namespace_exclude_each_other() {
        assert!(Cli::try_parse_from(["operator", "-A", "-n", "a"]).is_err());
    }

    #[test]
    fn the_definitions_are_printed_on_request() {
        assert!(matches!(request(&["crd"]), Request::PrintCrds));
    }
}
