//! `kopf-gen dev`: from an edit to the restarted operator, beside `cargo build` after the same edit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use kopf_tests::{ChildProcess, TestFailure, TestResult, workspace};
use tokio::time::sleep;

/// The pause between two looks at the log.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time for the first build.
const LIMIT: Duration = Duration::from_secs(3600);

/// Variables that change how the measured crates are built.
const BUILD_VARIABLES: [&str; 4] = [
    "CARGO_INCREMENTAL",
    "CARGO_PROFILE_DEV_DEBUG",
    "CARGO_TARGET_DIR",
    "RUSTFLAGS",
];

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many edits are made; the median is shown
    #[arg(long, default_value_t = 10)]
    edits: usize,
}

/// A new operator crate.
struct NewCrate {
    name: &'static str,
    folder: PathBuf,
    target: PathBuf,
}

/// Makes two crates that differ in their names, edits them in turn, and prints a table.
pub(crate) async fn run(options: &Options) -> TestResult {
    let scratch = tempfile::tempdir()?;
    let program = workspace::build_program("kopf-gen")?;
    let followed = NewCrate::make(&program, scratch.path(), "followed")?;
    let bare = NewCrate::make(&program, scratch.path(), "bare")?;
    bare.build()?;
    let mut session = ChildProcess::command(&program)
        .arg("dev")
        .current_dir(&followed.folder)
        .env("XDG_DATA_HOME", scratch.path().join("data"))
        .env("CARGO_TERM_COLOR", "never");
    for variable in BUILD_VARIABLES {
        session = session.env_remove(variable);
    }
    let session = session.env("CARGO_TARGET_DIR", &followed.target).start()?;
    let starts = format!("{} starts", followed.name);
    wait_for_count(&session, &starts, 1).await?;
    let (mut restarts, mut builds, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..options.edits {
        let begun = Instant::now();
        followed.edit(number)?;
        wait_for_count(&session, &starts, number + 2).await?;
        restarts.push(begun.elapsed().as_secs_f64());
        bare.edit(number)?;
        let begun = Instant::now();
        bare.build()?;
        builds.push(begun.elapsed().as_secs_f64());
        shares.push(restarts[number] - builds[number]);
    }
    println!(
        "{} edits of a handler, each in both crates:\n",
        options.edits
    );
    println!("| | median s | shortest | longest |\n|---|---|---|---|");
    for (title, times) in [
        ("`kopf-gen dev`, edit to restarted operator", &mut restarts),
        ("`cargo build` after the same edit", &mut builds),
        ("the difference, edit by edit", &mut shares),
    ] {
        times.sort_by(f64::total_cmp);
        let at = |place: usize| times.get(place).copied().unwrap_or(f64::NAN);
        let (median, last) = (at(times.len() / 2), at(times.len().saturating_sub(1)));
        println!("| {title} | {median:.2} | {:.2} | {last:.2} |", at(0));
    }
    session.terminate().await?;
    let down = Command::new(&program)
        .args(["cluster", "reset"])
        .env("XDG_DATA_HOME", scratch.path().join("data"))
        .output()?;
    if down.status.success() {
        Ok(())
    } else {
        Err(TestFailure::new(format!("{down:?}")))
    }
}

/// Waits until a text has appeared so many times.
async fn wait_for_count(session: &ChildProcess, text: &str, count: usize) -> TestResult {
    let begun = Instant::now();
    while session.log().matches(text).count() < count {
        if session.ending().is_some() || begun.elapsed() > LIMIT {
            let log = session.log();
            return Err(TestFailure::new(format!("no {count}. `{text}`:\n{log}")));
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

// === impl NewCrate ===

impl NewCrate {
    fn make(program: &Path, scratch: &Path, name: &'static str) -> Result<Self, TestFailure> {
        let folder = scratch.join(name);
        let made = Command::new(program)
            .args(["new", "--quiet"])
            .arg(&folder)
            .arg("--crd")
            .arg(workspace::root().join("examples/01-minimal/crds/kopfexamples.yaml"))
            .arg("--runtime-path")
            .arg(workspace::root())
            .status()?;
        if !made.success() {
            return Err(TestFailure::new("kopf-gen new failed"));
        }
        Ok(Self {
            name,
            folder,
            // Shared: both crates use the same builds of the same dependencies.
            target: scratch.join("target"),
        })
    }

    fn build(&self) -> TestResult {
        let mut cargo = Command::new("cargo");
        for variable in BUILD_VARIABLES {
            cargo.env_remove(variable);
        }
        let built = cargo
            .arg("build")
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(Stdio::piped())
            .output()?;
        if built.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&built.stderr);
        Err(TestFailure::new(format!("{}: {errors}", self.name)))
    }

    /// Changes what a handler logs.
    fn edit(&self, number: usize) -> TestResult {
        let file = self.folder.join("src/handlers/kopf_example.rs");
        let text = fs::read_to_string(&file)?;
        let marked = |number: usize| format!("was called, edit {number}: {{}}");
        let from = match number {
            0 => "was called: {}".to_owned(),
            _ => marked(number - 1),
        };
        if !text.contains(&from) {
            return Err(TestFailure::new(format!("no `{from}` in\n{text}")));
        }
        Ok(fs::write(file, text.replace(&from, &marked(number)))?)
    }
}
