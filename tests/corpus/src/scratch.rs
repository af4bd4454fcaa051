//! Crates for a while, under `target/`: generated modules go in, compiler verdicts and costs come out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde::Deserialize;

use crate::corpus::repository;
use crate::meter::{self, Cost};

/// A crate whose modules are generated.
#[derive(Clone, Debug)]
pub struct Scratch {
    package: String,
    folder: PathBuf,
    target: PathBuf,
}

/// What the modules of one generator need, compiled once for all crates of that generator.
#[derive(Clone, Copy, Debug)]
pub struct Supply {
    /// The name of the generator.
    pub generator: &'static str,
    /// The lines below `[dependencies]`.
    pub dependencies: &'static str,
}

/// A generated module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name in the crate.
    pub name: String,
    /// Its files, relative to `src`: `name.rs`, and what is below `name/`.
    pub files: Vec<SourceFile>,
}

/// A file of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path, with slashes.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// Whether modules can do without each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// Each stands alone.
    Independent,
    /// They use types of each other.
    Entangled,
}

/// Who judges the modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Judge {
    /// `cargo check`.
    Check,
    /// `cargo clippy`, its default lints as errors.
    Clippy,
    /// `cargo doc`, its warnings as errors.
    Doc,
}

/// What the judge said.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The complaints, by module; those about no module are under the empty name.
    pub complaints: BTreeMap<String, Vec<Complaint>>,
    /// What the last run cost, which had no complaints unless every module had some.
    pub cost: Cost,
}

/// An error; what is a warning elsewhere is one where the judge denies warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The code of the error or the name of the lint.
    pub code: String,
    /// The message with its snippet.
    pub rendered: String,
}

#[derive(Deserialize)]
struct CargoLine {
    message: Option<CargoMessage>,
}

#[derive(Deserialize)]
struct CargoMessage {
    level: String,
    code: Option<CargoCode>,
    message: String,
    rendered: Option<String>,
    spans: Vec<CargoSpan>,
}

#[derive(Deserialize)]
struct CargoCode {
    code: String,
}

#[derive(Deserialize)]
struct CargoSpan {
    file_name: String,
    is_primary: bool,
    expansion: Option<Box<CargoExpansion>>,
}

#[derive(Deserialize)]
struct CargoExpansion {
    span: CargoSpan,
}

/// The folder for everything that the measurements write.
#[must_use]
pub fn scratch_root() -> PathBuf {
    repository().join("target/corpus")
}

/// The lines of Rust in all modules.
#[must_use]
pub fn lines(modules: &[Module]) -> usize {
    modules
        .iter()
        .flat_map(|module| &module.files)
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| file.text.lines().count())
        .sum()
}

// === impl Scratch ===

impl Scratch {
    /// Makes an empty crate for modules of one generator; what was compiled for it before stays.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn create(name: &str, supply: &Supply) -> io::Result<Self> {
        let Supply {
            generator,
            dependencies,
        } = supply;
        let root = scratch_root().join(generator);
        let folder = root.join(name);
        let scratch = Self {
            package: format!("scratch-{name}"),
            target: root.join("target"),
            folder,
        };
        fs::create_dir_all(&scratch.folder)?;
        let package = &scratch.package;
        let manifest = format!(
            "[package]\nname = \"{package}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[profile.dev]\ndebug = false\nincremental = false\n\n[dependencies]\n{dependencies}"
        );
        fs::write(scratch.folder.join("Cargo.toml"), manifest)?;
        fs::copy(
            repository().join("Cargo.lock"),
            scratch.folder.join("Cargo.lock"),
        )?;
        Ok(scratch)
    }

    /// The folder of the crate.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Compiles the dependencies, so that they are no part of a cost.
    ///
    /// # Errors
    /// If cargo cannot be run or does not succeed.
    pub fn warm(&self, judge: Judge) -> io::Result<()> {
        self.fill(&[])?;
        let output = self.cargo(judge).output()?;
        if output.status.success() {
            Ok(())
        } else {
            Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).into_owned(),
            ))
        }
    }

    /// Replaces the modules of the crate.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn fill(&self, modules: &[Module]) -> io::Result<()> {
        self.replace(modules, "lib.rs", "")
    }

    /// Brings `src` to hold the modules and a root with this text behind their declarations.
    ///
    /// What is there already is left alone, so that cargo need not compile it again.
    fn replace(&self, modules: &[Module], root: &str, text: &str) -> io::Result<()> {
        let source = self.folder.join("src");
        let mut declarations = String::from("//! Generated modules, for a while.\n");
        for module in modules {
            writeln!(declarations, "pub mod {};", module.name).map_err(io::Error::other)?;
        }
        declarations.push_str(text);
        let mut files = BTreeMap::from([(source.join(root), declarations.as_str())]);
        for file in modules.iter().flat_map(|module| &module.files) {
            files.insert(source.join(&file.path), &file.text);
        }
        remove_others(&source, &files)?;
        for (path, text) in files {
            write_if_changed(&path, text)?;
        }
        Ok(())
    }

    /// Lets the judge look at the modules; independent ones again without those it complained of,
    /// until it is content.
    ///
    /// The compiler hides later errors behind earlier ones, so one look does not show all.
    ///
    /// # Errors
    /// If cargo cannot be run.
    pub fn judge(&self, judge: Judge, modules: &[Module], bond: Bond) -> io::Result<Verdict> {
        let mut verdict = Verdict::default();
        let mut left = modules.to_vec();
        loop {
            self.fill(&left)?;
            let (output, cost) = meter::run(&self.cargo(judge), &self.folder)?;
            verdict.cost = cost;
            let found = complaints(&String::from_utf8_lossy(&output.stdout));
            if found.is_empty() {
                if !output.status.success() {
                    return Err(io::Error::other(
                        String::from_utf8_lossy(&output.stderr).into_owned(),
                    ));
                }
                return Ok(verdict);
            }
            let bad: BTreeSet<&String> = found.keys().collect();
            let before = left.len();
            left.retain(|module| !bad.contains(&module.name));
            let stuck = left.len() == before;
            for (name, mut complaints) in found {
                verdict
                    .complaints
                    .entry(name)
                    .or_default()
                    .append(&mut complaints);
            }
            if bond == Bond::Entangled || stuck || left.is_empty() {
                return Ok(verdict);
            }
        }
    }

    /// Builds a program of a main file and the modules; tells where it is.
    ///
    /// In a program, unlike in a library, only what `main` reaches is compiled to machine code.
    ///
    /// # Errors
    /// If cargo cannot be run, or the program does not compile.
    pub fn build(&self, modules: &[Module], main: &str) -> io::Result<PathBuf> {
        self.replace(modules, "main.rs", main)?;
        let mut cargo = Command::new("cargo");
        cargo
            .args(["build", "--quiet"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target);
        let output = cargo.output()?;
        if output.status.success() {
            Ok(self.target.join("debug").join(&self.package))
        } else {
            Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).into_owned(),
            ))
        }
    }

    fn cargo(&self, judge: Judge) -> Command {
        let mut cargo = Command::new("cargo");
        match judge {
            Judge::Check => cargo.arg("check"),
            Judge::Clippy => cargo.arg("clippy"),
            Judge::Doc => cargo.args(["doc", "--no-deps"]),
        };
        cargo.args(["--message-format=json", "--quiet"]);
        if judge == Judge::Clippy {
            cargo.args(["--", "-D", "warnings"]);
        }
        cargo
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTDOCFLAGS", "-D warnings");
        cargo
    }
}

fn complaints(output: &str) -> BTreeMap<String, Vec<Complaint>> {
    let mut complaints: BTreeMap<String, Vec<Complaint>> = BTreeMap::new();
    for message in output
        .lines()
        .filter_map(|line| serde_json::from_str::<CargoLine>(line).ok()?.message)
        .filter(|message| message.level == "error")
        .filter(|message| !message.spans.is_empty())
    {
        let module = message
            .spans
            .iter()
            .find(|span| span.is_primary)
            .map(CargoSpan::outermost)
            .map(owner)
            .unwrap_or_default();
        complaints.entry(module).or_default().push(Complaint {
            code: message.code.map_or(message.message, |code| code.code),
            rendered: message.rendered.unwrap_or_default(),
        });
    }
    complaints
}

/// The module that a file below `src/` belongs to.
fn owner(file: &str) -> String {
    let inside = file.strip_prefix("src/").unwrap_or(file);
    let first = inside.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first).to_owned()
}

/// Removes files that are not to be kept.
fn remove_others(folder: &Path, kept: &BTreeMap<PathBuf, &str>) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains_key(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn write_if_changed(path: &Path, text: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == text.as_bytes()) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

// === impl CargoSpan ===

impl CargoSpan {
    /// The file in which the macro was called, if it is inside of one.
    fn outermost(&self) -> &str {
        match &self.expansion {
            Some(expansion) => expansion.span.outermost(),
            None => &self.file_name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_owns_what_is_below_its_name() {
        assert_eq!(owner("src/widget.rs"), "widget");
        assert_eq!(owner("src/widget/v1.rs"), "widget");
    }

    #[test]
    fn complaints_are_filed_under_the_module_that_called_the_macro() {
        let line = r#"{"reason":"compiler-message","message":{"level":"error","code":{"code":"E0428"},"message":"twice","rendered":"twice!","spans":[{"file_name":"/registry/derive.rs","is_primary":true,"expansion":{"span":{"file_name":"src/c007_v1.rs","is_primary":false,"expansion":null}}}]}}"#;
        let found = complaints(&format!(
            "{line}\n{{\"reason\":\"build-finished\"}}\nnot json"
        ));
        assert_eq!(found["c007_v1"][0].code, "E0428");
    }
}
