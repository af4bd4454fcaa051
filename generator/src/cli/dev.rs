//! `kopf-gen dev`: a cluster, the operator, and a new build of it after each change of a file.

mod build;
mod display;
mod error;
mod inputs;
mod keys;
mod page;
mod samples;
mod session;
mod target_cluster;

use std::path::PathBuf;

use clap::Args;
use kopf_cluster::ClusterName;

use self::display::Display;
use self::session::{DevSession, SessionEnd};
use super::console::Console;
use super::crate_folder::find_root;
use super::exit_status::CommandStatus;

/// Run the operator on a cluster on this machine, and build and restart it after each change
///
/// The command starts a control plane, applies the definitions, builds and runs the operator. When
/// kopf.yaml, a CRD or a source file changes, it generates and builds again; the running operator
/// stays until the new one is built.
#[derive(Debug, Args)]
pub(super) struct DevArgs {
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Use the cluster of this context of the kubeconfig, instead of one on this machine
    #[arg(long, value_name = "NAME", conflicts_with = "cluster")]
    context: Option<String>,
    /// The name of the cluster on this machine
    #[arg(long, value_name = "NAME", default_value = "default")]
    cluster: ClusterName,
    /// Build, apply the samples, wait until they are handled, print what happened, and exit
    #[arg(long)]
    once: bool,
    /// Build with optimization
    #[arg(long)]
    release: bool,
    /// Arguments of the operator, after `--`
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<String>,
}

pub(super) fn run(args: &DevArgs, console: &mut Console) -> CommandStatus {
    let root = match find_root(args.manifest.as_deref()) {
        Ok(root) => root,
        Err(message) => return console.fail(&message),
    };
    let kopf_gen = match std::env::current_exe() {
        Ok(kopf_gen) => kopf_gen,
        Err(error) => return console.fail_with(&error),
    };
    let cluster = match target_cluster::choose(args, console) {
        Ok(cluster) => cluster,
        Err(error) => return console.fail_with(&error),
    };
    console.clear_progress();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return console.fail_with(&error),
    };
    let display = Display::new(!args.once);
    let session = DevSession::new(root, kopf_gen, cluster, args, display.clone());
    let ended = runtime.block_on(async {
        if args.once {
            session.run_once().await
        } else {
            session.run().await
        }
    });
    // The thread that reads keys waits for the next one.
    runtime.shutdown_background();
    display.end();
    match ended {
        Ok(SessionEnd::Done) => CommandStatus::Ok,
        Ok(SessionEnd::NotHandled) => CommandStatus::Invalid,
        Err(error) => console.fail_with(&error),
    }
}
