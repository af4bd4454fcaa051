//! Prepares, measures and holds the control planes of the tests.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use kopf_tests::assets::{self, Environment};
use kopf_tests::guard::{self, leash};
use kopf_tests::{Failure, Identity, PrivateControlPlane, TestResult, program};

const USAGE: &str = "\
usage: control-plane <command>
  prepare             find or build the binaries of the control plane
  ready-time [COUNT]  start COUNT (5) control planes one after another; print the median time
  run                 hold a control plane and print its kubeconfig until standard input closes
  with COMMAND…       run a command with the kubeconfig of a control plane, and end as it does
Two more commands, guard and leash, belong to the tests.";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let command = arguments.next().unwrap_or_default();
    let outcome = match command.to_str() {
        Some("guard") => guard::run(arguments).map_err(Failure::from),
        Some("leash") => leash::run(arguments).map_err(Failure::from),
        Some("prepare") => prepare(),
        Some("ready-time") => ready_time(arguments.next()),
        Some("run") => run(),
        Some("with") => with(arguments),
        _ => Err(Failure::new(USAGE)),
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
    let assets = assets::obtain(&Environment::from_process())?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", assets.etcd.display())?;
    writeln!(out, "{}", assets.kube_apiserver.display())?;
    match assets.kube_controller_manager {
        Some(manager) => writeln!(out, "{}", manager.display())?,
        None => writeln!(
            out,
            "no kube-controller-manager: owner references do not cascade, namespaces do not go away"
        )?,
    }
    Ok(())
}

fn ready_time(count: Option<OsString>) -> TestResult {
    let count = match count {
        None => 5,
        Some(text) => text.to_string_lossy().parse::<usize>()?.max(1),
    };
    assets::obtain(&Environment::from_process())?;
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
    let name = command.next().ok_or_else(|| Failure::new(USAGE))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let plane = runtime.block_on(PrivateControlPlane::start())?;
    let kubeconfig = plane.kubeconfig(&Identity::administrator("developer"))?;
    let mut process = Command::new(&name);
    program::forget_package(&mut process);
    let process = process.args(command).env("KUBECONFIG", kubeconfig);
    let status = process.status()?;
    if status.success() {
        return Ok(());
    }
    let told = name.to_string_lossy();
    Err(Failure::new(format!("{told} has ended: {status}")))
}

fn run() -> TestResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let plane = runtime.block_on(PrivateControlPlane::start())?;
    let kubeconfig = plane.kubeconfig(&Identity::administrator("developer"))?;
    writeln!(io::stdout(), "export KUBECONFIG={}", kubeconfig.display())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
