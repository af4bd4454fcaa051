//! `kopf-gen cluster`: real control planes on this machine, each under a name.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use kopf_cluster::binaries::{self, DEFAULT_KUBERNETES, Environment};
use kopf_cluster::named::{ClusterStatus, Pods, UpOutcome};
use kopf_cluster::{ClusterName, NamedCluster, Program};
use serde_json::{Value, json};

use super::console::Console;
use super::exit_status::CommandStatus;
use super::output_args::OutputFormat;

mod logs;

use logs::LogsArgs;

/// Run a real control plane on this machine: etcd, kube-apiserver and kube-controller-manager
///
/// It needs no container, listens on loopback only, survives the command and keeps its data.
#[derive(Debug, Args)]
pub(super) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    Up(UpArgs),
    /// Stop a cluster; its data stay
    Down(NameArgs),
    /// Print the state of a cluster, or of all; the exit code is 1 unless it is up
    Status(StatusArgs),
    /// Print the path of the kubeconfig of a cluster
    Kubeconfig(NameArgs),
    /// Stop a cluster and delete its data
    Reset(NameArgs),
    Logs(LogsArgs),
}

/// Start a cluster unless it is up, and wait until it serves
#[derive(Debug, Args)]
struct UpArgs {
    #[command(flatten)]
    cluster: NameArgs,
    /// The minor version of Kubernetes
    #[arg(long, value_name = "VERSION", default_value = DEFAULT_KUBERNETES)]
    kubernetes: String,
    /// Take etcd, kube-apiserver and kube-controller-manager from this folder
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
    /// Leave Pods pending, instead of playing them on a simulated node
    #[arg(long)]
    no_node: bool,
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The name of the cluster
    #[arg(default_value = "default")]
    name: ClusterName,
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// The name of the cluster; all clusters by default
    name: Option<ClusterName>,
}

/// The reasons why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Cluster(#[from] kopf_cluster::named::Error),
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    #[error("cannot find this program")]
    Program(#[source] io::Error),
    #[error("there is no cluster `{0}`, and so no log; make it: kopf-gen cluster up {0}")]
    NoLogs(ClusterName),
    #[error("cannot read {}", .0.display())]
    Log(PathBuf, #[source] io::Error),
    #[error("cannot print")]
    Print(#[source] io::Error),
}

pub(super) fn run(args: &ClusterArgs, console: &mut Console) -> CommandStatus {
    let done = match &args.command {
        ClusterCommand::Up(args) => up(args, console),
        ClusterCommand::Down(args) => down(args, console),
        ClusterCommand::Status(args) => status(args, console),
        ClusterCommand::Kubeconfig(args) => kubeconfig(args),
        ClusterCommand::Reset(args) => reset(args, console),
        ClusterCommand::Logs(args) => logs::run(args),
    };
    match done {
        Ok(status) => status,
        Err(error) => console.fail_with(&error),
    }
}

/// Starts a cluster with the default options unless it is up.
pub(super) fn ensure_up(cluster: &NamedCluster, console: &mut Console) -> Result<(), Error> {
    start(cluster, Pods::Simulated, console, |_| {})?;
    Ok(())
}

fn start(
    cluster: &NamedCluster,
    pods: Pods,
    console: &mut Console,
    adjust: impl FnOnce(&mut Environment),
) -> Result<UpOutcome, Error> {
    if let ClusterStatus::Up(_) = cluster.responsive_status()? {
        return Ok(UpOutcome::WasUp);
    }
    let program = Program::this_executable().map_err(Error::Program)?;
    let mut environment = Environment::from_process(Some(&program));
    adjust(&mut environment);
    let found = binaries::obtain(&environment)?;
    console.print_line(&format!("starting {found}"));
    Ok(cluster.up(&program, &found, pods)?)
}

fn up(args: &UpArgs, console: &mut Console) -> Result<CommandStatus, Error> {
    let cluster = args.cluster.cluster()?;
    let name = cluster.name();
    let pods = if args.no_node {
        Pods::Pending
    } else {
        Pods::Simulated
    };
    let outcome = start(&cluster, pods, console, |environment| {
        args.kubernetes
            .trim_start_matches('v')
            .clone_into(&mut environment.kubernetes);
        environment.folders.named.clone_from(&args.binaries);
    })?;
    let how = match outcome {
        UpOutcome::Started => "is up",
        UpOutcome::Repaired => "is up again after a crash",
        UpOutcome::WasUp => "was up already",
    };
    if let ClusterStatus::Up(details) = cluster.status()? {
        let server = &details.server;
        console.print_line(&format!("the cluster `{name}` {how}: {server}"));
        console.print_line(pods_line(details.pods));
    }
    let kubeconfig = cluster.kubeconfig();
    console.print_line(&format!("  export KUBECONFIG={}", kubeconfig.display()));
    if console.format() == OutputFormat::Json {
        print(&to_json(&cluster, &cluster.status()?).to_string())?;
    }
    Ok(CommandStatus::Ok)
}

fn pods_line(pods: Pods) -> &'static str {
    match pods {
        Pods::Simulated => {
            "Pods are simulated: they become scheduled, running and ready, and no container runs"
        }
        Pods::Pending => "Pods stay pending: there is no node",
    }
}

fn down(args: &NameArgs, console: &mut Console) -> Result<CommandStatus, Error> {
    let cluster = args.cluster()?;
    let how = if cluster.down()? {
        "has stopped; its data stay"
    } else {
        "was not up"
    };
    console.print_line(&format!("the cluster `{}` {how}", cluster.name()));
    Ok(CommandStatus::Ok)
}

fn reset(args: &NameArgs, console: &mut Console) -> Result<CommandStatus, Error> {
    let cluster = args.cluster()?;
    let how = if cluster.reset()? {
        "and its data are gone"
    } else {
        "did not exist"
    };
    console.print_line(&format!("the cluster `{}` {how}", cluster.name()));
    Ok(CommandStatus::Ok)
}

fn kubeconfig(args: &NameArgs) -> Result<CommandStatus, Error> {
    let cluster = args.cluster()?;
    match cluster.status()? {
        ClusterStatus::Up(_) => {
            print(&cluster.kubeconfig().display().to_string())?;
            Ok(CommandStatus::Ok)
        }
        _ => Err(kopf_cluster::named::Error::NotUp(cluster.name().clone()).into()),
    }
}

fn status(args: &StatusArgs, console: &mut Console) -> Result<CommandStatus, Error> {
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => NamedCluster::all_of_user()?,
    };
    if names.is_empty() {
        console.print_line("there is no cluster; make one: kopf-gen cluster up");
    }
    let mut all_up = !names.is_empty();
    for name in names {
        let cluster = NamedCluster::of_user(name)?;
        let status = cluster.status()?;
        all_up &= matches!(status, ClusterStatus::Up(_));
        print(&match console.format() {
            OutputFormat::Human => to_text(&cluster, &status),
            OutputFormat::Json => to_json(&cluster, &status).to_string(),
        })?;
    }
    Ok(if all_up {
        CommandStatus::Ok
    } else {
        CommandStatus::Invalid
    })
}

fn to_text(cluster: &NamedCluster, status: &ClusterStatus) -> String {
    let name = cluster.name();
    let data = cluster.folder().display();
    match status {
        ClusterStatus::Absent => format!("{name}: there is no cluster of this name"),
        ClusterStatus::Down => format!("{name}: down\n  data: {data}"),
        ClusterStatus::Crashed => {
            format!("{name}: crashed; repair it: kopf-gen cluster up {name}\n  data: {data}")
        }
        ClusterStatus::Failed(reason) => format!("{name}: failed: {reason}\n  data: {data}"),
        ClusterStatus::Changing => format!("{name}: starting or stopping\n  data: {data}"),
        ClusterStatus::Up(details) => format!(
            "{name}: up at {}\n  {}\n  {}\n  kubeconfig: {}\n  data: {data}\n  keeper: process {}, {} restarts of components",
            details.server,
            details.binaries,
            pods_line(details.pods),
            cluster.kubeconfig().display(),
            details.keeper,
            details.restarts,
        ),
    }
}

fn to_json(cluster: &NamedCluster, status: &ClusterStatus) -> Value {
    let mut value = json!({
        "name": cluster.name().as_str(),
        "status": match status {
            ClusterStatus::Absent => "absent",
            ClusterStatus::Down => "down",
            ClusterStatus::Crashed => "crashed",
            ClusterStatus::Failed(_) => "failed",
            ClusterStatus::Changing => "changing",
            ClusterStatus::Up(_) => "up",
        },
        "data": cluster.folder(),
    });
    match status {
        ClusterStatus::Failed(reason) => value["reason"] = reason.as_str().into(),
        ClusterStatus::Up(details) => {
            value["server"] = details.server.as_str().into();
            value["binaries"] = details.binaries.as_str().into();
            value["kubeconfig"] = json!(cluster.kubeconfig());
            value["keeper"] = details.keeper.into();
            value["restarts"] = details.restarts.into();
            value["simulatesPods"] = (details.pods == Pods::Simulated).into();
        }
        _ => {}
    }
    value
}

fn print(text: &str) -> Result<(), Error> {
    writeln!(io::stdout().lock(), "{text}").map_err(Error::Print)
}

// === impl NameArgs ===

impl NameArgs {
    fn cluster(&self) -> Result<NamedCluster, Error> {
        Ok(NamedCluster::of_user(self.name.clone())?)
    }
}
