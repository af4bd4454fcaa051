//! Building the binaries, with a script in place of Go that succeeds, fails or hangs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use kopf_tests::{TestFailure, TestResult, eventually};

use super::leak::is_running;

/// Writes the file after `-o`, and records the run.
const BUILDS: &str = "#!/bin/sh
echo run >> \"$XDG_CACHE_HOME/runs\"
while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done
: > \"$out\"
";

const FAILS: &str = "#!/bin/sh
echo 'dial tcp: lookup proxy.golang.org: no such host' >&2
exit 1
";

/// Writes its process id to a file, and never ends.
const HANGS: &str = "#!/bin/sh
echo $$ > \"$XDG_CACHE_HOME/pid.new\"
/bin/mv \"$XDG_CACHE_HOME/pid.new\" \"$XDG_CACHE_HOME/pid\"
exec /bin/sleep 1000
";

const ALTERNATIVES: [&str; 5] = [
    "1. KUBEBUILDER_ASSETS",
    "2. setup-envtest",
    "3. on Linux, a connection",
    "4. Go",
    "5. for tests, KOPF_TEST_KUBECONFIG",
];

fn prepare(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    command
        .arg("prepare")
        .env_remove("KUBEBUILDER_ASSETS")
        .env_remove("KOPF_TEST_KUBECONFIG")
        .env("PATH", home)
        .env("XDG_CACHE_HOME", home)
        .env("XDG_DATA_HOME", home)
        .env("KOPF_CLUSTER_KUBERNETES_MIRROR", "none")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn install_go(home: &Path, script: &str) -> TestResult {
    let go = home.join("go");
    fs::write(&go, script)?;
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn assert_contains(output: &Output, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn without_go_the_message_names_what_is_missing_and_how_to_provide_it() -> TestResult {
    let home = tempfile::tempdir()?;

    let output = prepare(home.path()).output()?;

    assert!(!output.status.success());
    assert_contains(&output, &["`go` is not in PATH"]);
    assert_contains(&output, &ALTERNATIVES);
    Ok(())
}

#[test]
fn without_network_the_message_shows_the_output_of_go() -> TestResult {
    let home = tempfile::tempdir()?;
    install_go(home.path(), FAILS)?;

    let output = prepare(home.path()).output()?;

    assert!(!output.status.success());
    assert_contains(
        &output,
        &["building etcd", "proxy.golang.org: no such host"],
    );
    assert_contains(&output, &ALTERNATIVES);
    Ok(())
}

#[test]
fn processes_that_start_together_build_once() -> TestResult {
    let home = tempfile::tempdir()?;
    install_go(home.path(), BUILDS)?;

    let both = [prepare(home.path()).spawn()?, prepare(home.path()).spawn()?];
    let mut outputs = Vec::new();
    for process in both {
        let output = process.wait_with_output()?;
        if !output.status.success() {
            return Err(TestFailure::new(String::from_utf8_lossy(&output.stderr)));
        }
        outputs.push(output.stdout);
    }

    assert_eq!(outputs[0], outputs[1], "both use the same binaries");
    let runs = fs::read_to_string(home.path().join("runs"))?;
    assert_eq!(runs.lines().count(), 3, "one run of Go per binary");
    Ok(())
}

#[tokio::test]
async fn an_interrupted_build_leaves_no_process_and_is_repeated() -> TestResult {
    let home = tempfile::tempdir()?;
    install_go(home.path(), HANGS)?;
    let mut interrupted = prepare(home.path()).spawn()?;
    let pid: i32 = eventually("Go runs", async || {
        fs::read_to_string(home.path().join("pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    })
    .await?;
    assert!(is_running(pid));

    interrupted.kill()?;
    interrupted.wait()?;

    eventually("Go has ended", async || (!is_running(pid)).then_some(())).await?;
    install_go(home.path(), BUILDS)?;
    assert!(prepare(home.path()).output()?.status.success());
    Ok(())
}
