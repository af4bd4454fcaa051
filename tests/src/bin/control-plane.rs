//! The command `control-plane`: builds, measures and runs control planes for tests.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use kopf_tests::binaries::{self, Environment};
use kopf_tests::child_process::wrapper;
use kopf_tests::supervisor;
use kopf_tests::{PrivateControlPlane, TestFailure, TestResult, User, workspace};

const USAGE: &str = "\
usage: control-plane <command>
  prepare             find or build the binaries of the control plane
  ready-time [COUNT]  start COUNT (5) control planes one after another; print the median time
  run                 run a control plane until standard input closes; print its kubeconfig
  with COMMAND…       run a command with the kubeconfig of a new control plane
Two more commands, supervise and run-child, are for the tests.";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let command = arguments.next().unwrap_or_default();
    let outcome = match command.to_str() {
        Some(supervisor::SUBCOMMAND) => supervisor::run(arguments).map_err(TestFailure::from),
        Some(wrapper::SUBCOMMAND) => wrapper::run(arguments).map_err(TestFailure::from),
        Some("prepare") => prepare(),
        Some("ready-time") => ready_time(arguments.next()),
        Some("run") => run(),
        Some("with") => with(arguments),
        _ => Err(TestFailure::new(USAGE)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // There is nowhere else to report to.
            let _ = writeln!(io::stderr(), "{}", failure.message());
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> TestResult {
    let binaries = binaries::obtain(&Environment::from_process())?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", binaries.etcd.display())?;
    writeln!(out, "{}", binaries.kube_apiserver.display())?;
    match binaries.kube_controller_manager {
        Some(manager) => writeln!(out, "{}", manager.display())?,
        None => writeln!(
            out,
            "no kube-controller-manager: owner references do not cascade, namespaces are not deleted"
        )?,
    }
    Ok(())
}

fn ready_time(count: Option<OsString>) -> TestResult {
    let count = match count {
        None => 5,
        Some(text) => text.to_string_lossy().parse::<usize>()?.max(1),
    };
    binaries::obtain(&Environment::from_process())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        let plane = runtime.block_on(PrivateControlPlane::start())?;
        times.push(started.elapsed());
        drop(plane);
    }
    times.sort();
    let [fastest, .., slowest] = times.as_slice() else {
        writeln!(io::stdout(), "ready in {:.2?}", times[0])?;
        return Ok(());
    };
    let median = times[times.len() / 2];
    writeln!(
        io::stdout(),
        "ready in {median:.2?} (median of {count}; {fastest:.2?} to {slowest:.2?})"
    )?;
    Ok(())
}

fn with(mut command: impl Iterator<Item = OsString>) -> TestResult {
    let name = command.next().ok_or_else(|| TestFailure::new(USAGE))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let plane = runtime.block_on(PrivateControlPlane::start())?;
    let kubeconfig = plane.kubeconfig(&User::administrator("developer"))?;
    let mut process = Command::new(&name);
    workspace::clear_cargo_variables(&mut process);
    let process = process.args(command).env("KUBECONFIG", kubeconfig);
    let status = process.status()?;
    if status.success() {
        return Ok(());
    }
    Err(TestFailure::new(format!(
        "{} ended: {status}",
        name.to_string_lossy()
    )))
}

fn run() -> TestResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let plane = runtime.block_on(PrivateControlPlane::start())?;
    let kubeconfig = plane.kubeconfig(&User::administrator("developer"))?;
    writeln!(io::stdout(), "export KUBECONFIG={}", kubeconfig.display())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
