//! The command `control-plane`: builds, measures and runs control planes for tests.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use kopf_cluster::{Program, subcommand};
use kopf_tests::binaries::{self, Environment};
use kopf_tests::{PrivateControlPlane, TestFailure, TestResult, User, workspace};

const USAGE: &str = "\
usage: control-plane <command>
  prepare             find or build the binaries of the control plane
  ready-time [COUNT]  start COUNT (5) control planes one after another; print the median time
  run                 run a control plane until standard input closes; print its kubeconfig
  with COMMAND…       run a command with the kubeconfig of a new control plane
The tests use more commands, which begin with @.";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    if let Some(outcome) = subcommand::run(env::args_os().skip(1)) {
        return end(outcome);
    }
    let command = arguments.next().unwrap_or_default();
    end(match command.to_str() {
        Some("prepare") => prepare(),
        Some("ready-time") => ready_time(arguments.next()),
        Some("run") => run(),
        Some("with") => with(arguments),
        _ => Err(TestFailure::new(USAGE)),
    })
}

fn end(outcome: TestResult) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // There is nowhere else to report to.
            let _ = writeln!(io::stderr(), "{}", failure.message());
            ExitCode::FAILURE
        }
    }
}

fn environment() -> Environment {
    Environment::from_process(Program::this_executable().ok().as_ref())
}

fn prepare() -> TestResult {
    let found = binaries::obtain(&environment())?;
    writeln!(io::stderr(), "{found}")?;
    let binaries = found.binaries;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", binaries.etcd.display())?;
    writeln!(out, "{}", binaries.kube_apiserver.display())?;
    match binaries.kube_controller_manager {
        Some(manager) => writeln!(out, "{}", manager.display())?,
        None => writeln!(out, "{}", binaries::WITHOUT_CONTROLLER_MANAGER)?,
    }
    Ok(())
}

fn ready_time(count: Option<OsString>) -> TestResult {
    let count = match count {
        None => 5,
        Some(text) => text.to_string_lossy().parse::<usize>()?.max(1),
    };
    binaries::obtain(&environment())?;
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
