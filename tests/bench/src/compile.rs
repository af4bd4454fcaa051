//! Compile cost: a new operator of ours and kube-rs's controller template, from nothing and after
//! an edit.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;
use kopf_tests::{TestFailure, TestResult, workspace};
use serde_json::Value;

use crate::process::children_cpu;

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many edits are compiled; the median is shown
    #[arg(long, default_value_t = 5)]
    edits: usize,
    /// Leave out the template with its extras
    #[arg(long)]
    bare_only: bool,
}

/// A crate that is compiled.
struct MeasuredCrate {
    title: &'static str,
    folder: PathBuf,
    arguments: &'static [&'static str],
    /// The file that is edited.
    edited: &'static str,
}

/// The cost of a build.
#[derive(Clone, Copy, Debug)]
struct BuildCost {
    crates: usize,
    cpu: f64,
    wall: f64,
}

/// Compiles all crates, one after another, and prints a table.
pub(crate) fn run(options: &Options) -> TestResult {
    let scratch = tempfile::tempdir()?;
    let measured_crates = measured_crates(scratch.path(), options)?;
    println!("| | crates | CPU s, cold | CPU s, after an edit | s, after an edit | load |");
    println!("|---|---|---|---|---|---|");
    for side in &measured_crates {
        side.cargo(&["fetch"])?;
        let cold = side.build()?;
        let load = load()?;
        let mut edits = Vec::new();
        for number in 0..options.edits {
            side.edit(number)?;
            edits.push(side.build()?);
        }
        edits.sort_by(|a, b| a.wall.total_cmp(&b.wall));
        let edit = edits.get(edits.len() / 2).copied().unwrap_or(cold);
        println!(
            "| {} | {} | {:.1} | {:.2} | {:.2} | {load} |",
            side.title, cold.crates, cold.cpu, edit.cpu, edit.wall
        );
        fs::remove_dir_all(side.target())?;
    }
    Ok(())
}

fn measured_crates(scratch: &Path, options: &Options) -> Result<Vec<MeasuredCrate>, TestFailure> {
    let generator = workspace::build_program("kopf-gen")?;
    let definition = workspace::root().join("examples/01-minimal/crds/kopfexamples.yaml");
    let made = Command::new(&generator)
        .args(["-q", "new", "ours", "--crd"])
        .arg(&definition)
        .current_dir(scratch)
        .status()?;
    if !made.success() {
        return Err(TestFailure::new("kopf-gen new failed"));
    }
    let template = scratch.join("template");
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("controller-template"),
        &template,
    )?;
    let mut measured_crates = vec![
        MeasuredCrate {
            title: "here",
            folder: scratch.join("ours"),
            arguments: &[],
            edited: "src/handlers/kopf_example.rs",
        },
        MeasuredCrate {
            title: "controller template without its extras",
            folder: template.clone(),
            arguments: &["--no-default-features"],
            edited: "src/lib.rs",
        },
    ];
    if !options.bare_only {
        measured_crates.push(MeasuredCrate {
            title: "controller template",
            folder: template,
            arguments: &[],
            edited: "src/lib.rs",
        });
    }
    Ok(measured_crates)
}

/// Copies a small crate, without its target folder.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if name == "target" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// The load average of the last minute.
fn load() -> io::Result<String> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

// === impl MeasuredCrate ===

impl MeasuredCrate {
    fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Vec<u8>, TestFailure> {
        let output = Command::new("cargo")
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.target())
            .env_remove("RUSTFLAGS")
            .stderr(Stdio::piped())
            .output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(TestFailure::new(format!("{}: {errors}", self.title)))
    }

    /// Makes a debug build; the dependencies must be fetched.
    fn build(&self) -> Result<BuildCost, TestFailure> {
        let arguments = ["build", "--offline", "--message-format=json"];
        let (before, started) = (children_cpu()?, Instant::now());
        let messages = self.cargo(&[&arguments[..], self.arguments].concat())?;
        let (wall, cpu) = (started.elapsed().as_secs_f64(), children_cpu()? - before);
        let text = String::from_utf8_lossy(&messages);
        let packages: BTreeSet<String> = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["reason"] == "compiler-artifact")
            .map(|message| message["package_id"].to_string())
            .collect();
        Ok(BuildCost {
            crates: packages.len(),
            cpu,
            wall,
        })
    }

    /// Changes a log message of a handler.
    fn edit(&self, number: usize) -> io::Result<()> {
        let path = self.folder.join(self.edited);
        let text = fs::read_to_string(&path)?;
        let marked = |number: usize| format!("was called, edit {number}");
        let (from, to) = if text.contains("was called: {}") {
            ("was called: {}".to_owned(), marked(number) + ": {}")
        } else if text.contains("it is {reason}") {
            ("it is {reason}".to_owned(), marked(number) + " {reason}")
        } else {
            (marked(number.wrapping_sub(1)), marked(number))
        };
        fs::write(path, text.replace(&from, &to))
    }
}
