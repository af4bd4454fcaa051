//! The command line of an operator.

mod page;
mod webhooks;

use std::ffi::OsStr;

use clap::builder::{BoolishValueParser, Resettable, TypedValueParser as _};
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};
use kopf_core::peering::DEV_PRIORITY;
use kopf_core::scope::{NamespacePattern, PatternProblem};

use self::page::PageArgs;
use self::webhooks::WebhookArgs;
use super::logging::{LogFormat, LogSetup, LogVerbosity};
use crate::health::endpoint::HealthEndpoint;
use crate::inspect::{InspectArgs, UnstickArgs};

/// The option that is used like a flag, but takes a value.
const LOG_PREFIX: &str = "log_prefix";

/// Kopf's variables whose names differ from those of the options.
const KOPF_VARIABLES: [(&str, &str); 7] = [
    ("KOPF_RUN_ALL_NAMESPACES", "KOPF_RUN_CLUSTERWIDE"),
    ("KOPF_RUN_LIVENESS", "KOPF_RUN_LIVENESS_ENDPOINT"),
    ("KOPF_RUN_NAMESPACE", "KOPF_RUN_NAMESPACES"),
    ("KOPF_FREEZE_ALL_NAMESPACES", "KOPF_FREEZE_CLUSTERWIDE"),
    ("KOPF_FREEZE_NAMESPACE", "KOPF_FREEZE_NAMESPACES"),
    ("KOPF_RESUME_ALL_NAMESPACES", "KOPF_RESUME_CLUSTERWIDE"),
    ("KOPF_RESUME_NAMESPACE", "KOPF_RESUME_NAMESPACES"),
];

/// The text of `--version` if the operator has none of its own.
const RUNTIME_VERSION: &str = concat!("(kopf-runtime ", env!("CARGO_PKG_VERSION"), ")");

/// The text of `--help` below the options.
const EXIT_CODES: &str = "\
The operator connects to the cluster of $KUBECONFIG or ~/.kube/config, or to the one that it runs in.
Every option of `run` can also be set by the environment variable shown beside it.

Exit codes:
  0  the operator was stopped, or the command is done
  1  a part of the operator ended by itself
  2  the command line is invalid
  3  the handler declarations or settings are invalid
  4  a startup handler has failed
  5  there is no cluster, no access to it, or no such object
  6  webhooks, health endpoint, page, peering or CustomResourceDefinitions do not work
  7  a cleanup handler has failed
  8  the operator did not stop in time
  130, 143  a second signal (SIGINT, SIGTERM) interrupted the handlers";

/// The command line; without a command the operator runs.
#[derive(Debug, Parser)]
#[command(
    disable_help_subcommand = true,
    about = "A Kubernetes operator; without a command it runs",
    long_about = None,
    after_help = EXIT_CODES
)]
pub(super) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator (this is the default)
    Run(Box<RunArgs>),
    /// Print the CustomResourceDefinitions that the operator handles, or apply them
    Crd(CrdArgs),
    /// Pause the operators of a peering for a while
    ///
    /// They continue when the time is over, or after `resume`. Operators that run with `--standalone`,
    /// or with a higher priority, do not pause.
    Freeze(FreezeArgs),
    /// Let the operators of a peering continue after `freeze`
    Resume(ResumeArgs),
    /// Show how far objects are handled: handlers, errors, changes, and what holds their deletion
    ///
    /// The command reads the objects. The operator need not run.
    Inspect(InspectArgs),
    /// Remove the finalizer and the records of this operator from objects, if it is gone
    ///
    /// Handlers for deletion are not called. An operator that runs puts both back.
    Unstick(UnstickArgs),
}

/// The options of `crd`.
#[derive(Debug, Clone, Args)]
struct CrdArgs {
    /// Apply the definitions to the cluster, and log what changed
    #[arg(long)]
    apply: bool,

    /// Take over fields that another field manager owns
    #[arg(long, requires = "apply")]
    force: bool,
}

/// The options of `run`.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) scope: ScopeArgs,

    #[command(flatten)]
    pub(super) peering: PeeringArgs,

    #[command(flatten)]
    pub(super) logging: LoggingArgs,
    #[command(flatten)]
    pub(super) webhooks: WebhookArgs,

    /// Serve the liveness probe at this HTTP address, with readiness at /readyz and metrics at
    /// /metrics of the same host and port
    #[arg(
        short = 'L',
        long,
        value_name = "http://HOST:PORT/PATH",
        env = "KOPF_RUN_LIVENESS",
        help_heading = "Health"
    )]
    pub(super) liveness: Option<HealthEndpoint>,

    #[command(flatten)]
    pub(super) page: PageArgs,
}

/// The options for the served namespaces.
#[derive(Debug, Clone, Args)]
pub(super) struct ScopeArgs {
    /// Serve these namespaces only: a name, or a pattern such as 'myapp-*,!*-pr-*'; may be given
    /// several times
    ///
    /// In a pattern, `*`, `?` and `[…]` stand for letters, and `!` excludes. The first glob decides
    /// which namespaces are considered; of the others, the rightmost that matches wins. The operator
    /// follows namespaces as they come and go.
    #[arg(
        short,
        long,
        value_name = "PATTERN",
        value_parser = namespace_pattern,
        env = "KOPF_RUN_NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(super) namespace: Vec<NamespacePattern>,

    /// Serve the whole cluster
    #[arg(short = 'A', long, env = "KOPF_RUN_ALL_NAMESPACES")]
    pub(super) all_namespaces: bool,
}

/// The options for peering and leader election.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Other operators")]
pub(super) struct PeeringArgs {
    /// Run without peering and without leader election
    #[arg(long, env = "KOPF_RUN_STANDALONE", conflicts_with = "peering")]
    pub(super) standalone: bool,

    /// Join the ClusterKopfPeering of this name, or the KopfPeerings of this name in all served
    /// namespaces; pause until it exists
    #[arg(short = 'P', long, value_name = "NAME", env = "KOPF_RUN_PEERING")]
    pub(super) peering: Option<String>,

    /// Operators with a lower priority pause while this one runs, and this one pauses for higher ones
    #[arg(
        short,
        long,
        value_name = "N",
        allow_negative_numbers = true,
        env = "KOPF_RUN_PRIORITY"
    )]
    priority: Option<i64>,

    /// Run on a developer's machine, ahead of an operator in the cluster: priority 666
    #[arg(long, env = "KOPF_RUN_DEV")]
    pub(super) dev: bool,

    /// The name of this operator in peerings and leases; by default $POD_ID, or user, host and time
    #[arg(long, value_name = "ID", env = "KOPF_RUN_ID")]
    pub(super) id: Option<String>,

    /// The name of the Lease by which one of several replicas becomes the leader, for an operator that
    /// runs beside another of its kind
    #[arg(long, value_name = "NAME", env = "KOPF_RUN_LEASE")]
    pub(super) lease: Option<String>,

    /// The namespace of the Lease by which one of several replicas becomes the leader
    #[arg(long, value_name = "NAME", env = "KOPF_RUN_LEASE_NAMESPACE")]
    pub(super) lease_namespace: Option<String>,
}

/// The options for the log.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Log")]
pub(super) struct LoggingArgs {
    /// Log what the operator does in detail
    #[arg(short, long, env = "KOPF_RUN_VERBOSE", conflicts_with = "quiet")]
    verbose: bool,

    /// Log also each request to the API server: verb, path, status and time
    #[arg(short, long, env = "KOPF_RUN_DEBUG", conflicts_with = "quiet")]
    debug: bool,

    /// Log warnings and errors only
    #[arg(short, long, env = "KOPF_RUN_QUIET")]
    quiet: bool,

    /// The format of log lines
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        default_value_t = LogFormat::Full,
        env = "KOPF_RUN_LOG_FORMAT"
    )]
    log_format: LogFormat,

    /// Begin each line about an object with [namespace/name]; this is the default except for JSON
    #[arg(
        long,
        env = "KOPF_RUN_LOG_PREFIX",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        overrides_with = "no_log_prefix"
    )]
    log_prefix: Option<bool>,

    /// Do not begin lines with [namespace/name]
    #[arg(long, overrides_with = "log_prefix")]
    no_log_prefix: bool,

    /// The key of the object in JSON lines
    #[arg(
        long,
        value_name = "KEY",
        default_value = "object",
        env = "KOPF_RUN_LOG_REFKEY"
    )]
    log_refkey: String,
}

/// The options of `freeze`.
#[derive(Debug, Clone, Args)]
pub(super) struct FreezeArgs {
    /// In this namespace only; may be given several times
    #[arg(
        short,
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "KOPF_FREEZE_NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(super) namespace: Vec<String>,

    /// In the whole cluster
    #[arg(short = 'A', long, env = "KOPF_FREEZE_ALL_NAMESPACES")]
    pub(super) all_namespaces: bool,

    /// The name of the peering; by default that of this operator
    #[arg(short = 'P', long, value_name = "NAME", env = "KOPF_FREEZE_PEERING")]
    pub(super) peering: Option<String>,

    /// Pause only operators with a lower priority
    #[arg(
        short,
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 100,
        env = "KOPF_FREEZE_PRIORITY"
    )]
    priority: i64,

    /// Pause also operators with a priority up to 665
    #[arg(long, env = "KOPF_FREEZE_DEV")]
    dev: bool,

    /// The number of seconds that they pause
    #[arg(
        short = 't',
        long,
        value_name = "SECONDS",
        env = "KOPF_FREEZE_LIFETIME"
    )]
    pub(super) lifetime: u32,

    /// The name under which they are paused; by default user and host
    #[arg(short, long, value_name = "ID", env = "KOPF_FREEZE_ID")]
    pub(super) id: Option<String>,

    /// Ignored; Kopf accepts it, so scripts may use it
    #[arg(short, long, value_name = "TEXT", hide = true, action = ArgAction::Set)]
    message: Option<String>,

    #[command(flatten)]
    pub(super) logging: LoggingArgs,
}

/// The options of `resume`.
#[derive(Debug, Clone, Args)]
pub(super) struct ResumeArgs {
    /// In this namespace only; may be given several times
    #[arg(
        short,
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "KOPF_RESUME_NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(super) namespace: Vec<String>,

    /// In the whole cluster
    #[arg(short = 'A', long, env = "KOPF_RESUME_ALL_NAMESPACES")]
    pub(super) all_namespaces: bool,

    /// The name of the peering; by default that of this operator
    #[arg(short = 'P', long, value_name = "NAME", env = "KOPF_RESUME_PEERING")]
    pub(super) peering: Option<String>,

    /// The name under which they were paused; by default user and host
    #[arg(short, long, value_name = "ID", env = "KOPF_RESUME_ID")]
    pub(super) id: Option<String>,

    #[command(flatten)]
    pub(super) logging: LoggingArgs,
}

/// The action that the command line asks for.
#[derive(Debug)]
pub(super) enum RequestedAction {
    Run(Box<RunArgs>),
    PrintCrds,
    ApplyCrds { force: bool },
    Freeze(FreezeArgs),
    Resume(ResumeArgs),
    Inspect(InspectArgs),
    Unstick(UnstickArgs),
}

/// The parser of the command line.
pub(super) fn command(name: &'static str, version: Option<&'static str>) -> clap::Command {
    let command = Cli::command()
        .mut_subcommand("freeze", without_variables_of_run)
        .mut_subcommand("resume", without_variables_of_run);
    ignore_flags_set_to_false(accept_variables_of_kopf(command))
        .name(name)
        .version(version.unwrap_or(RUNTIME_VERSION))
}

/// The options of the log that a command shares with `run`; the variables are for `run` alone.
fn without_variables_of_run(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let variable = arg.get_env().and_then(OsStr::to_str);
        match variable {
            Some(name) if name.starts_with("KOPF_RUN_") => arg.env(Resettable::Reset),
            _ => arg,
        }
    })
}

/// Reads Kopf's variable of an option if that is set and the option's own is not, so that the
/// environment of a Kopf operator means the same here.
fn accept_variables_of_kopf(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_set = |name: &str| std::env::var_os(name).is_some();
        let variable = arg.get_env().and_then(OsStr::to_str);
        let known = variable.and_then(|own| KOPF_VARIABLES.iter().find(|(known, _)| *known == own));
        match known {
            Some((own, kopf)) if !is_set(own) && is_set(kopf) => {
                let is_list = kopf.ends_with("_NAMESPACES");
                let arg = arg.env(kopf);
                if is_list {
                    arg.value_delimiter(' ')
                } else {
                    arg
                }
            }
            _ => arg,
        }
    });
    command.mut_subcommands(accept_variables_of_kopf)
}

/// Treats a flag whose environment variable is false as not given, so that it conflicts with none.
fn ignore_flags_set_to_false(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        let value = value.and_then(|value| parse_bool(&value));
        match (arg.get_action(), value) {
            (ArgAction::SetTrue, Some(false)) => arg.env(Resettable::Reset),
            (ArgAction::SetTrue, _) => arg.value_parser(BoolishValueParser::new()),
            // Both `--log-prefix` and `--no-log-prefix` override the variable.
            (_, Some(value)) if arg.get_id() == LOG_PREFIX => arg
                .env(Resettable::Reset)
                .default_value(if value { "true" } else { "false" }),
            _ => arg,
        }
    });
    command.mut_subcommands(ignore_flags_set_to_false)
}

fn parse_bool(value: &OsStr) -> Option<bool> {
    let parser = BoolishValueParser::new();
    parser.parse_ref(&clap::Command::new(""), None, value).ok()
}

fn namespace_pattern(text: &str) -> Result<NamespacePattern, PatternProblem> {
    let pattern = NamespacePattern::new(text);
    match pattern.problem() {
        Some(flaw) => Err(flaw),
        None => Ok(pattern),
    }
}

impl From<Cli> for RequestedAction {
    fn from(cli: Cli) -> Self {
        match cli.command {
            None => Self::Run(Box::new(cli.run)),
            Some(Command::Run(args)) => Self::Run(args),
            Some(Command::Crd(CrdArgs { apply: false, .. })) => Self::PrintCrds,
            Some(Command::Crd(CrdArgs { force, .. })) => Self::ApplyCrds { force },
            Some(Command::Freeze(args)) => Self::Freeze(args),
            Some(Command::Resume(args)) => Self::Resume(args),
            Some(Command::Inspect(args)) => Self::Inspect(args),
            Some(Command::Unstick(args)) => Self::Unstick(args),
        }
    }
}

impl PeeringArgs {
    /// The priority, if the command line gives one.
    pub(super) fn priority(&self) -> Option<i64> {
        if self.dev {
            return Some(DEV_PRIORITY);
        }
        self.priority
    }
}

impl FreezeArgs {
    pub(super) fn priority(&self) -> i64 {
        if self.dev {
            DEV_PRIORITY
        } else {
            self.priority
        }
    }
}

impl LoggingArgs {
    /// The log of a command for people, who need neither time nor level of its few lines.
    pub(super) fn setup_of_command(&self) -> LogSetup {
        match self.log_format {
            LogFormat::Full => self.setup().format(LogFormat::Plain),
            LogFormat::Plain | LogFormat::Json => self.setup(),
        }
    }

    /// The log that the options ask for.
    pub(super) fn setup(&self) -> LogSetup {
        let setup = LogSetup::default()
            .verbosity(self.verbosity())
            .format(self.log_format)
            .reference_key(&self.log_refkey);
        match self.log_prefix() {
            Some(prefix) => setup.prefix(prefix),
            None => setup,
        }
    }

    /// Whether lines begin with their object, if an option says so.
    fn log_prefix(&self) -> Option<bool> {
        if self.no_log_prefix {
            return Some(false);
        }
        self.log_prefix
    }

    fn verbosity(&self) -> LogVerbosity {
        match self {
            Self { quiet: true, .. } => LogVerbosity::Quiet,
            Self { debug: true, .. } => LogVerbosity::Debug,
            Self { verbose: true, .. } => LogVerbosity::Verbose,
            _ => LogVerbosity::Normal,
        }
    }
}

#[cfg(test)]
mod tests;
