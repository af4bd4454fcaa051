//! Operator crates for real definitions: made or refused with a reason, and compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, io};

use super::{Error, NewArgs, say};
use crate::corpus::{Corpus, DefinitionFile, repository};
use crate::scratch::scratch_root;

const PRESETS: [&str; 3] = ["minimal", "child", "full"];

/// What became of one `kopf-gen new`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// There is a crate.
    Made,
    /// It was refused, with these codes.
    Refused(String),
    /// Neither: the program broke.
    Broken(String),
}

pub(super) fn new(arguments: &NewArgs) -> Result<(), Error> {
    let corpus = Corpus::locate()?;
    let files = corpus.files(arguments.selection.part());
    let workspace = scratch_root().join("crates");
    if workspace.exists() {
        fs::remove_dir_all(&workspace)?;
    }
    fs::create_dir_all(&workspace)?;
    let mut broken = 0;
    for preset in PRESETS {
        let (mut made, mut refused) = (0, BTreeMap::<String, usize>::new());
        for file in &files {
            match make(file, preset, &workspace)? {
                Fate::Made => made += 1,
                Fate::Refused(codes) => {
                    say(format_args!("{preset} {}: {codes}", file.stem))?;
                    *refused.entry(codes).or_default() += 1;
                }
                Fate::Broken(complaint) => {
                    broken += 1;
                    say(format_args!("{preset} {}: {complaint}", file.stem))?;
                }
            }
        }
        let reasons: usize = refused.values().sum();
        say(format_args!(
            "{preset}: {made} of {} definitions become a crate, {reasons} are refused with a reason, {} break the program",
            files.len(),
            files.len() - made - reasons,
        ))?;
    }
    if broken > 0 {
        return Err(Error::Failures(broken));
    }
    if arguments.compile {
        compile(&workspace)?;
    }
    Ok(())
}

fn make(file: &DefinitionFile, preset: &str, workspace: &Path) -> Result<Fate, Error> {
    let program = env::current_exe()?.with_file_name("kopf-gen");
    let name = crate_name(file, preset);
    let output = Command::new(program)
        .args(["-q", "new", &name, "--preset", preset, "--crd"])
        .arg(&file.path)
        .arg("--runtime-path")
        .arg(repository())
        .current_dir(workspace)
        .output()?;
    Ok(fate(&output, &workspace.join(name)))
}

fn crate_name(file: &DefinitionFile, preset: &str) -> String {
    format!("{preset}-{}", file.index)
}

fn fate(output: &Output, folder: &Path) -> Fate {
    let said = String::from_utf8_lossy(&output.stderr);
    let codes: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("error[")?.split(']').next())
        .collect();
    match output.status.code() {
        Some(0) if folder.join("Cargo.toml").exists() => Fate::Made,
        Some(1) if !codes.is_empty() && !folder.exists() => Fate::Refused(codes.join(" ")),
        _ => Fate::Broken(said.into_owned()),
    }
}

/// All crates together, as members of one workspace.
fn compile(workspace: &Path) -> Result<(), Error> {
    let manifest =
        "[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n\n[profile.dev]\ndebug = false\n";
    fs::write(workspace.join("Cargo.toml"), manifest)?;
    fs::copy(
        repository().join("Cargo.lock"),
        workspace.join("Cargo.lock"),
    )?;
    let target: PathBuf = scratch_root().join("crates-target");
    let output = Command::new("cargo")
        .args([
            "--offline",
            "clippy",
            "--quiet",
            "--workspace",
            "--keep-going",
        ])
        .args(["--", "-D", "warnings"])
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", target)
        .output()?;
    if output.status.success() {
        return say(format_args!("all of them compile without a warning"));
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()).into())
}
