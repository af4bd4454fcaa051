//! `kopf-gen dev`: the operator follows the files, and the former one runs until the new one is built.

use std::path::{Path, PathBuf};
use std::process::Command;

use kopf_tests::child_process::{ChildProcess, ChildProcessBuilder, Ending};
use kopf_tests::{TestFailure, TestResult, workspace};
use tempfile::TempDir;

/// The time for the builds.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(900);

struct DevFixture {
    program: PathBuf,
    crate_folder: PathBuf,
    data: TempDir,
    _parent: TempDir,
}

impl DevFixture {
    fn new() -> Result<Self, TestFailure> {
        let program = workspace::build_program("kopf-gen")?;
        let parent = TempDir::new()?;
        let crate_folder = parent.path().join("dev-operator");
        let crd = workspace::root().join("examples/01-minimal/crds/kopfexamples.yaml");
        let made = Command::new(&program)
            .args(["new", "--quiet"])
            .arg(&crate_folder)
            .arg("--crd")
            .arg(crd)
            .arg("--runtime-path")
            .arg(workspace::root())
            .status()?;
        assert!(made.success());
        Ok(Self {
            program,
            crate_folder,
            data: TempDir::new()?,
            _parent: parent,
        })
    }

    fn dev(&self, arguments: &[&str]) -> ChildProcessBuilder {
        ChildProcess::command(&self.program)
            .arg("dev")
            .args(arguments)
            .current_dir(&self.crate_folder)
            .env("XDG_DATA_HOME", self.data.path())
            .env("CARGO_TARGET_DIR", workspace::root().join("target"))
            .env("CARGO_TERM_COLOR", "never")
    }

    fn handlers(&self) -> PathBuf {
        self.crate_folder.join("src/handlers/kopf_example.rs")
    }

    /// Builds the crate as its user does.
    fn build(&self) -> Result<String, TestFailure> {
        let mut cargo = workspace::cargo();
        cargo
            .args(["build", "--message-format=json"])
            .env("CARGO_TARGET_DIR", workspace::root().join("target"));
        let output = cargo.current_dir(&self.crate_folder).output()?;
        assert!(output.status.success(), "{output:?}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn cluster(&self, command: &str) -> TestResult {
        let done = Command::new(&self.program)
            .args(["cluster", command])
            .env("XDG_DATA_HOME", self.data.path())
            .output()?;
        assert!(done.status.success(), "{done:?}");
        Ok(())
    }
}

/// Waits until a text has appeared so many times.
async fn wait_for_count(process: &ChildProcess, text: &str, count: usize) -> TestResult {
    let started = std::time::Instant::now();
    while process.log().matches(text).count() < count {
        if process.ending().is_some() || started.elapsed() > LIMIT {
            return Err(TestFailure::new(format!(
                "no {count}. `{text}`:\n{}",
                process.log()
            )));
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Ok(())
}

fn replace(file: &Path, from: &str, to: &str) -> TestResult {
    let text = std::fs::read_to_string(file)?;
    assert!(text.contains(from), "{text}");
    std::fs::write(file, text.replace(from, to))?;
    Ok(())
}

#[tokio::test]
async fn dev_runs_the_operator_and_replaces_it_after_each_change() -> TestResult {
    let fixture = DevFixture::new()?;
    let once = fixture.dev(&["--once"]).start()?;
    assert_eq!(
        once.wait_within(LIMIT).await?,
        Ending::Exit(0),
        "{}",
        once.log()
    );
    let log = once.log();
    assert!(
        log.contains("dev: KopfExample sample-kopfexample is handled"),
        "{log}"
    );
    assert!(log.contains("state       handled"), "{log}");
    let built = fixture.build()?;
    let compiled = built.lines().find(|line| line.contains(r#""fresh":false"#));
    assert_eq!(compiled, None, "dev has built it");

    let dev = fixture.dev(&[]).start()?;
    wait_for_count(&dev, "dev: built in", 1).await?;
    wait_for_count(&dev, "dev-operator starts", 1).await?;
    replace(&fixture.handlers(), "Ok(())", "Ok((")?;
    wait_for_count(
        &dev,
        "dev: the build failed; the former operator still runs",
        1,
    )
    .await?;
    replace(&fixture.handlers(), "Ok((", "Ok(())")?;
    wait_for_count(&dev, "dev-operator starts", 2).await?;

    let manifest = fixture.crate_folder.join("kopf.yaml");
    replace(&manifest, "on: create", "on: creation")?;
    wait_for_count(
        &dev,
        "dev: kopf.yaml or a CRD has errors; the former operator still runs",
        1,
    )
    .await?;
    replace(&manifest, "on: creation", "on: create")?;
    wait_for_count(&dev, "dev-operator starts", 3).await?;
    assert_eq!(dev.terminate().await?, Ending::Exit(0), "{}", dev.log());
    assert!(
        dev.log().contains("dev-operator has stopped"),
        "{}",
        dev.log()
    );
    fixture.cluster("reset")
}
