//! The command `new`: makes an operator crate for each definition, and compiles all crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use super::{Error, NewCratesArgs, generator, print};
use crate::command_cost;
use crate::corpus::{DefinitionFile, repository};
use crate::scratch_crate::scratch_root;

const PRESETS: [&str; 3] = ["minimal", "child", "full"];

/// The result of one `kopf-gen new`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CrateResult {
    /// kopf-gen made a crate.
    Made,
    /// kopf-gen reported errors with these codes.
    Refused(String),
    /// Neither: kopf-gen failed in another way.
    Broken(String),
}

pub(super) fn new(arguments: &NewCratesArgs) -> Result<(), Error> {
    let corpus = arguments.selection.corpus.open()?;
    let files = corpus.files(arguments.selection.subset());
    let workspace = scratch_root().join("crates");
    if workspace.exists() {
        fs::remove_dir_all(&workspace)?;
    }
    fs::create_dir_all(&workspace)?;
    let (mut broken, mut crates) = (0, BTreeMap::new());
    for (turn, preset) in PRESETS.into_iter().enumerate() {
        let (mut made, mut refused, mut count) = (0, 0, 0);
        for (index, file) in files.iter().enumerate() {
            if arguments.in_turn && index % PRESETS.len() != turn {
                continue;
            }
            count += 1;
            match make(file, preset, &workspace)? {
                CrateResult::Made => {
                    made += 1;
                    crates.insert(crate_name(file, preset), file.stem.as_str());
                }
                CrateResult::Refused(codes) => {
                    refused += 1;
                    print(format_args!("{preset} {}: {codes}", file.stem))?;
                }
                CrateResult::Broken(error) => {
                    broken += 1;
                    print(format_args!("{preset} {}: {error}", file.stem))?;
                }
            }
        }
        print(format_args!(
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

fn make(file: &DefinitionFile, preset: &str, workspace: &Path) -> Result<CrateResult, Error> {
    let name = crate_name(file, preset);
    let output = Command::new(generator()?)
        .args(["-q", "new", &name, "--preset", preset, "--crd"])
        .arg(&file.path)
        .arg("--runtime-path")
        .arg(repository())
        .current_dir(workspace)
        .output()?;
    Ok(crate_result(&output, &workspace.join(name)))
}

fn crate_name(file: &DefinitionFile, preset: &str) -> String {
    format!("{preset}-{}", file.index)
}

fn crate_result(output: &Output, folder: &Path) -> CrateResult {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let codes: Vec<&str> = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("error[")?.split(']').next())
        .collect();
    match output.status.code() {
        Some(0) if folder.join("Cargo.toml").exists() => CrateResult::Made,
        Some(1) if !codes.is_empty() && !folder.exists() => CrateResult::Refused(codes.join(" ")),
        _ => CrateResult::Broken(stderr.into_owned()),
    }
}

/// Compiles all crates as members of one workspace; `crates` has the definition of each by name.
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
    let (output, cost) = command_cost::run(&clippy, &scratch_root())?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let refused = refused(&stderr);
    for name in &refused {
        let definition = crates.get(name).copied().unwrap_or("not one of ours");
        print(format_args!("{name} is refused: {definition}"))?;
    }
    if !output.status.success() && refused.is_empty() {
        return Err(io::Error::other(stderr.into_owned()).into());
    }
    print(format_args!(
        "{} of {} crates compile with their tests, without a warning; {:.0} CPU s",
        crates.len() - refused.len().min(crates.len()),
        crates.len(),
        cost.cpu.as_secs_f64(),
    ))?;
    if refused.is_empty() {
        return Ok(());
    }
    print(format_args!("{stderr}"))?;
    Err(Error::Refused(refused.len()))
}

/// The packages that cargo could not compile.
fn refused(stderr: &str) -> BTreeSet<String> {
    stderr
        .lines()
        .filter_map(|line| line.strip_prefix("error: could not compile `"))
        .filter_map(|line| line.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_do_not_compile_are_found_in_the_output_of_cargo() {
        let stderr = "error: unused import\n\n\
                    error: could not compile `child-7` (bin \"child-7\") due to 1 previous error\n\
                    error: could not compile `child-7` (bin \"child-7\" test) due to 1 previous error\n";
        assert_eq!(refused(stderr), BTreeSet::from(["child-7".to_owned()]));
    }
}
