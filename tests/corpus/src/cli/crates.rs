//! Operator crates for real definitions: made or refused with a reason, and compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use super::{Error, NewArgs, generator, say};
use crate::corpus::{Corpus, DefinitionFile, repository};
use crate::meter;
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
    let (mut broken, mut crates) = (0, BTreeMap::new());
    for (turn, preset) in PRESETS.into_iter().enumerate() {
        let (mut made, mut refused, mut count) = (0, 0, 0);
        for (place, file) in files.iter().enumerate() {
            if arguments.in_turn && place % PRESETS.len() != turn {
                continue;
            }
            count += 1;
            match make(file, preset, &workspace)? {
                Fate::Made => {
                    made += 1;
                    crates.insert(crate_name(file, preset), file.stem.as_str());
                }
                Fate::Refused(codes) => {
                    refused += 1;
                    say(format_args!("{preset} {}: {codes}", file.stem))?;
                }
                Fate::Broken(complaint) => {
                    broken += 1;
                    say(format_args!("{preset} {}: {complaint}", file.stem))?;
                }
            }
        }
        say(format_args!(
            "{preset}: {made} of {count} definitions become a crate, {refused} are refused with a reason, {} break the program",
            count - made - refused,
        ))?;
    }
    if broken > 0 {
        return Err(Error::Failures(broken));
    }
    if arguments.compile {
        compile(&workspace, &crates)?;
    }
    Ok(())
}

fn make(file: &DefinitionFile, preset: &str, workspace: &Path) -> Result<Fate, Error> {
    let name = crate_name(file, preset);
    let output = Command::new(generator()?)
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

/// All crates together, as members of one workspace; `crates` tells by their names what they are of.
fn compile(workspace: &Path, crates: &BTreeMap<String, &str>) -> Result<(), Error> {
    let manifest =
        "[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n\n[profile.dev]\ndebug = false\n";
    fs::write(workspace.join("Cargo.toml"), manifest)?;
    fs::copy(
        repository().join("Cargo.lock"),
        workspace.join("Cargo.lock"),
    )?;
    let target: PathBuf = scratch_root().join("crates-target");
    let mut clippy = Command::new("cargo");
    clippy
        .args(["--offline", "clippy", "--quiet", "--workspace"])
        .args(["--all-targets", "--keep-going", "--", "-D", "warnings"])
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", target);
    let (output, cost) = meter::run(&clippy, &scratch_root())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let refused = refused(&said);
    for name in &refused {
        let definition = crates.get(name).copied().unwrap_or("not one of ours");
        say(format_args!("{name} is refused: {definition}"))?;
    }
    if !output.status.success() && refused.is_empty() {
        return Err(io::Error::other(said.into_owned()).into());
    }
    say(format_args!(
        "{} of {} crates compile with their tests, without a warning; {:.0} CPU s",
        crates.len() - refused.len().min(crates.len()),
        crates.len(),
        cost.cpu.as_secs_f64(),
    ))?;
    if refused.is_empty() {
        return Ok(());
    }
    say(format_args!("{said}"))?;
    Err(Error::Refused(refused.len()))
}

/// The packages that cargo gave up on.
fn refused(said: &str) -> BTreeSet<String> {
    said.lines()
        .filter_map(|line| line.strip_prefix("error: could not compile `"))
        .filter_map(|line| line.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_do_not_compile_are_known_by_what_cargo_says() {
        let said = "error: unused import\n\n\
                    error: could not compile `child-7` (bin \"child-7\") due to 1 previous error\n\
                    error: could not compile `child-7` (bin \"child-7\" test) due to 1 previous error\n";
        assert_eq!(refused(said), BTreeSet::from(["child-7".to_owned()]));
    }
}
