//! CPU time and memory of a process, from `/proc`.

use std::time::Duration;
use std::{fs, io};

use kopf_tests::{ChildProcess, TestFailure};
use tokio::time::sleep;

/// Linux reports CPU time in hundredths of a second to every program.
const TICKS_PER_SECOND: f64 = 100.0;

/// The interval of checks, and the number of idle ones in a row after which a process is idle.
const IDLE_CHECKS: (Duration, u32) = (Duration::from_millis(500), 4);

/// No benchmark takes longer.
const LONGEST_RUN: Duration = Duration::from_secs(24 * 60 * 60);

/// The resources that a process has used so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// User and system time together, in seconds.
    pub(crate) cpu: f64,
    /// The most memory that it ever had, in megabytes.
    pub(crate) peak_megabytes: f64,
    /// The memory that it has now, in megabytes.
    pub(crate) resident_megabytes: f64,
}

/// User and system time that a process has used, or all the children that it waited for, in seconds.
fn cpu(process: &str, first_field: usize) -> io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program, in brackets, may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = fields
        .split_whitespace()
        .skip(first_field)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Ok(ticks / TICKS_PER_SECOND)
}

/// The CPU time of all ended child processes, in seconds.
pub(crate) fn children_cpu() -> io::Result<f64> {
    cpu("self", 13)
}

/// The CPU time of any process, in seconds.
pub(crate) fn cpu_of(pid: &str) -> io::Result<f64> {
    cpu(pid, 11)
}

/// Reads the usage of an operator so far.
pub(crate) fn usage(operator: &ChildProcess) -> io::Result<Usage> {
    let pid = operator.pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let megabytes = |key: &str| {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok())
            .map(|kilobytes| kilobytes / 1024.0)
            .ok_or_else(|| io::Error::other(format!("the kernel does not report {key}")))
    };
    Ok(Usage {
        cpu: cpu(&pid.to_string(), 11)?,
        peak_megabytes: megabytes("VmHWM:")?,
        resident_megabytes: megabytes("VmRSS:")?,
    })
}

/// The resident memory of an operator, in megabytes.
pub(crate) fn resident_megabytes(operator: &ChildProcess) -> io::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", operator.pid()))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .map(|kilobytes| kilobytes / 1024.0)
        .ok_or_else(|| io::Error::other("the kernel does not report VmRSS"))
}

/// Waits until an operator is idle, and returns its usage.
pub(crate) async fn usage_when_idle(operator: &ChildProcess) -> io::Result<Usage> {
    let (pause, times) = IDLE_CHECKS;
    let mut last = usage(operator)?;
    let mut quiet = 0;
    while quiet < times {
        sleep(pause).await;
        let now = usage(operator)?;
        // An idle program may use one tick in half a second.
        quiet = if now.cpu - last.cpu <= 0.011 {
            quiet + 1
        } else {
            0
        };
        last = now;
    }
    Ok(last)
}

/// Awaits `work`; fails if the operator ends before.
pub(crate) async fn while_running<T>(
    operator: &ChildProcess,
    work: impl Future<Output = Result<T, TestFailure>>,
) -> Result<T, TestFailure> {
    tokio::select! {
        done = work => done,
        ended = operator.wait_within(LONGEST_RUN) => Err(TestFailure::new(format!(
            "the operator ended before its work was done: {:?}\n{}",
            ended?,
            operator.log()
        ))),
    }
}
