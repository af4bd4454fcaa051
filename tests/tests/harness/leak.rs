//! No process or folder outlives the test process, however it ends; and control planes are shared.
//!
//! The failing test process is this test binary, run once more with one of its tests; a variable says
//! how it ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use kopf_tests::binaries::{self, Environment};
use kopf_tests::{ChildProcess, ControlPlane, PrivateControlPlane, TestFailure, TestResult, User};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

/// The variable with the way in which the started test process ends.
const ENDING_VARIABLE: &str = "KOPF_TEST_ENDING";

/// The time limit after which nothing may be left.
const GONE_TIMEOUT: Duration = Duration::from_secs(10);

const MARK: &str = "started: ";

/// The processes and the folder that a test process has started.
#[derive(Debug, Serialize, Deserialize)]
struct StartedProcesses {
    processes: Vec<i32>,
    folder: PathBuf,
}

#[tokio::test]
async fn a_control_plane_and_an_operator_end_with_their_values() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let operator = ChildProcess::command("sleep").arg("1000").start()?;
    let started = StartedProcesses::of(&plane, Some(&operator))?;
    assert!(started.processes.len() >= 7, "{started:?}");
    end_as_requested(&started)?;

    drop((plane, operator));

    assert!(started.is_gone(), "{:?}", started.left());
    Ok(())
}

#[tokio::test]
async fn test_processes_share_one_control_plane() -> TestResult {
    if env::var_os(ENDING_VARIABLE).is_some() {
        return end_as_requested(&StartedProcesses::of(
            &*ControlPlane::shared().await?,
            None,
        )?);
    }
    let cache = tempfile::tempdir()?;
    let (mut first, ours) = start_sharing_process(cache.path())?;
    let (mut second, theirs) = start_sharing_process(cache.path())?;

    first.kill()?;
    first.wait()?;

    assert_eq!(
        theirs.folder, ours.folder,
        "the second uses what the first has started"
    );
    let (mut third, still) = start_sharing_process(cache.path())?;
    assert_eq!(
        still.folder, ours.folder,
        "and keeps it running for the third"
    );
    for process in [&mut second, &mut third] {
        process.kill()?;
        process.wait()?;
    }
    ours.assert_gone_soon()
}

#[tokio::test]
async fn a_given_kubeconfig_is_used_as_the_shared_control_plane() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let giver = User::administrator("giver");

    let output = Command::new(env::current_exe()?)
        .args(["--exact", "api::two_sandboxes_do_not_see_each_other"])
        .env(binaries::KUBECONFIG_VARIABLE, plane.kubeconfig(&giver)?)
        .env(binaries::ASSETS_VARIABLE, "/nonexistent")
        .output()?;

    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    let created = plane.audit_log()?.requests()?.into_iter().any(|it| {
        it.user == giver.name() && it.verb == "create" && it.resource.as_deref() == Some("widgets")
    });
    assert!(created, "the other process worked on the given cluster");
    Ok(())
}

#[test]
fn nothing_is_left_after_kill_9() -> TestResult {
    assert_nothing_is_left_after("hold", |process| signal(process, Signal::KILL))
}

#[test]
fn nothing_is_left_after_ctrl_c() -> TestResult {
    assert_nothing_is_left_after("hold", |process| signal(process, Signal::INT))
}

#[test]
fn nothing_is_left_after_a_panic() -> TestResult {
    assert_nothing_is_left_after("panic", |_| Ok(()))
}

#[test]
fn the_registration_of_a_dead_supervisor_is_replaced() -> TestResult {
    let cache = tempfile::tempdir()?;
    let (mut first, dead) = start_sharing_process(cache.path())?;
    let supervisor =
        Pid::from_raw(dead.processes[0]).ok_or_else(|| TestFailure::new("no supervisor"))?;
    // The supervisor leads the process group of everything it has started.
    kill_process_group(supervisor, Signal::KILL)?;
    fs::remove_dir_all(&dead.folder)?;

    let (mut second, alive) = start_sharing_process(cache.path())?;
    for process in [&mut first, &mut second] {
        process.kill()?;
        process.wait()?;
    }

    assert_ne!(alive.folder, dead.folder);
    dead.assert_gone_soon()?;
    alive.assert_gone_soon()
}

#[test]
fn a_killed_supervisor_leaves_no_process() -> TestResult {
    let cache = tempfile::tempdir()?;
    let (mut process, dead) = start_sharing_process(cache.path())?;
    let supervisor =
        Pid::from_raw(dead.processes[0]).ok_or_else(|| TestFailure::new("no supervisor"))?;
    kill_process(supervisor, Signal::KILL)?;
    fs::remove_dir_all(&dead.folder)?;
    dead.assert_gone_soon()?;
    process.kill()?;
    process.wait()?;
    Ok(())
}

/// Starts a test process that shares its control plane with processes of the same cache folder.
fn start_sharing_process(cache: &Path) -> Result<(Child, StartedProcesses), TestFailure> {
    let found = binaries::obtain(&Environment::from_process(None))?;
    let binaries = found
        .binaries
        .etcd
        .parent()
        .unwrap_or(Path::new("/"))
        .to_owned();
    let name = "leak::test_processes_share_one_control_plane";
    start_test_process(name, "hold", |command| {
        command
            .env("XDG_CACHE_HOME", cache)
            .env(binaries::ASSETS_VARIABLE, &binaries);
    })
}

fn assert_nothing_is_left_after(
    ending: &str,
    end: impl FnOnce(&mut Child) -> io::Result<()>,
) -> TestResult {
    let name = "leak::a_control_plane_and_an_operator_end_with_their_values";
    let (mut process, started) = start_test_process(name, ending, |_| {})?;
    end(&mut process)?;
    let status = process.wait()?;
    assert!(!status.success(), "the process fails");
    started.assert_gone_soon()
}

/// Runs one test of this binary in a process of its own, up to the point where it ends.
fn start_test_process(
    test: &str,
    ending: &str,
    configure: impl FnOnce(&mut Command),
) -> Result<(Child, StartedProcesses), TestFailure> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args(["--exact", test])
        .env(ENDING_VARIABLE, ending)
        .env_remove(binaries::KUBECONFIG_VARIABLE);
    configure(&mut command);
    let mut process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = process
        .stdout
        .take()
        .ok_or_else(|| TestFailure::new("the process has no output"))?;
    let mut printed = String::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some((_, text)) = line.split_once(MARK) {
            return Ok((process, serde_json::from_str(text)?));
        }
        printed.push_str(&line);
        printed.push('\n');
    }
    process.wait()?;
    Err(TestFailure::new(format!(
        "the process ended too early:\n{printed}"
    )))
}

/// In the started process, prints what it has started and ends as requested; else does nothing.
fn end_as_requested(started: &StartedProcesses) -> TestResult {
    let Some(ending) = env::var_os(ENDING_VARIABLE) else {
        return Ok(());
    };
    writeln!(io::stdout(), "{MARK}{}", serde_json::to_string(started)?)?;
    io::stdout().flush()?;
    if ending == "panic" {
        panic!("as requested");
    }
    loop {
        thread::park();
    }
}

fn signal(process: &mut Child, signal: Signal) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(process), signal)?)
}

/// Whether the process exists and is no zombie.
pub(super) fn is_running(pid: i32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != "Z" && state != "X")
}

fn state_and_parent(pid: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in parentheses and may contain spaces.
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// The children of a process, and theirs: each component has a wrapper.
pub(super) fn descendants_of(parent: i32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse() else {
            continue;
        };
        if state_and_parent(pid).is_some_and(|(_, its)| its == parent) {
            found.push(pid);
            found.extend(descendants_of(pid)?);
        }
    }
    Ok(found)
}

// === impl StartedProcesses ===

impl StartedProcesses {
    fn of(plane: &ControlPlane, operator: Option<&ChildProcess>) -> Result<Self, TestFailure> {
        let (supervisor, folder) = plane.supervisor_pid_and_folder()?;
        let supervisor = i32::try_from(supervisor)?;
        let mut processes = vec![supervisor];
        processes.extend(descendants_of(supervisor)?);
        processes.extend(operator.map(ChildProcess::pid));
        Ok(Self {
            processes,
            folder: folder.to_owned(),
        })
    }

    fn is_gone(&self) -> bool {
        self.left().is_empty() && !self.folder.exists()
    }

    fn left(&self) -> Vec<i32> {
        self.processes
            .iter()
            .copied()
            .filter(|&pid| is_running(pid))
            .collect()
    }

    #[track_caller]
    fn assert_gone_soon(&self) -> TestResult {
        let deadline = Instant::now() + GONE_TIMEOUT;
        while !self.is_gone() {
            if Instant::now() > deadline {
                let (left, folder) = (self.left(), self.folder.exists());
                return Err(TestFailure::new(format!(
                    "left: {left:?}; the folder exists: {folder}"
                )));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}
