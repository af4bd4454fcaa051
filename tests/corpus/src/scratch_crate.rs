//! Temporary crates under `target/`, in which cargo checks generated modules and measures the cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde::Deserialize;

use crate::command_cost::{self, CommandCost};
use crate::corpus::repository;

/// A crate whose modules are generated.
#[derive(Clone, Debug)]
pub struct ScratchCrate {
    package: String,
    folder: PathBuf,
    target: PathBuf,
}

/// The dependencies of the modules of one generator, compiled once for all its crates.
#[derive(Clone, Copy, Debug)]
pub struct CrateDependencies {
    /// The name of the generator.
    pub generator: &'static str,
    /// The lines below `[dependencies]`.
    pub dependencies: &'static str,
}

/// A generated module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedModule {
    /// Its name in the crate.
    pub name: String,
    /// Its files, relative to `src`: `name.rs`, and what is below `name/`.
    pub files: Vec<ModuleFile>,
}

/// A file of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// The path, with slashes.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// Whether modules use types of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleCoupling {
    /// They do not.
    Independent,
    /// They do.
    Coupled,
}

/// The cargo command that checks the modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CargoCommand {
    /// `cargo check`.
    Check,
    /// `cargo clippy`, its default lints as errors.
    Clippy,
    /// `cargo doc`, its warnings as errors.
    Doc,
}

/// The errors and the cost of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// The errors by module; those of no module are under the empty name.
    pub errors: BTreeMap<String, Vec<CompilerError>>,
    /// The cost of the last run, which had no errors unless every module had some.
    pub cost: CommandCost,
}

/// An error of the compiler, or a warning where the command denies warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerError {
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

/// The folder for all files of the measurements.
#[must_use]
pub fn scratch_root() -> PathBuf {
    repository().join("target/corpus")
}

/// The lines of Rust in all modules.
#[must_use]
pub fn lines(modules: &[GeneratedModule]) -> usize {
    modules
        .iter()
        .flat_map(|module| &module.files)
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| file.text.lines().count())
        .sum()
}

// === impl ScratchCrate ===

impl ScratchCrate {
    /// Makes an empty crate for modules of one generator; keeps what was compiled before.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn create(name: &str, dependencies: &CrateDependencies) -> io::Result<Self> {
        let CrateDependencies {
            generator,
            dependencies,
        } = dependencies;
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

    /// Compiles the dependencies, so that a later cost does not include them.
    ///
    /// # Errors
    /// If cargo cannot be run or does not succeed.
    pub fn compile_dependencies(&self, command: CargoCommand) -> io::Result<()> {
        self.fill(&[])?;
        let output = self.cargo(command).output()?;
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
    pub fn fill(&self, modules: &[GeneratedModule]) -> io::Result<()> {
        self.replace(modules, "lib.rs", "")
    }

    /// Writes the modules and a root file with their declarations and this text into `src`.
    ///
    /// Unchanged files are not written, so that cargo does not compile them again.
    fn replace(&self, modules: &[GeneratedModule], root: &str, text: &str) -> io::Result<()> {
        let source = self.folder.join("src");
        let mut declarations = String::from("//! Generated modules, for a measurement.\n");
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

    /// Checks the modules; independent ones again without those that have errors, until no errors
    /// are left.
    ///
    /// The compiler stops at the first phase with errors, so one run does not show all.
    ///
    /// # Errors
    /// If cargo cannot be run.
    pub fn check_modules(
        &self,
        command: CargoCommand,
        modules: &[GeneratedModule],
        coupling: ModuleCoupling,
    ) -> io::Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut left = modules.to_vec();
        loop {
            self.fill(&left)?;
            let (output, cost) = command_cost::run(&self.cargo(command), &self.folder)?;
            report.cost = cost;
            let found = parse_errors(&String::from_utf8_lossy(&output.stdout));
            if found.is_empty() {
                if !output.status.success() {
                    return Err(io::Error::other(
                        String::from_utf8_lossy(&output.stderr).into_owned(),
                    ));
                }
                return Ok(report);
            }
            let failed: BTreeSet<&String> = found.keys().collect();
            let before = left.len();
            left.retain(|module| !failed.contains(&module.name));
            let stuck = left.len() == before;
            for (name, mut errors) in found {
                report.errors.entry(name).or_default().append(&mut errors);
            }
            if coupling == ModuleCoupling::Coupled || stuck || left.is_empty() {
                return Ok(report);
            }
        }
    }

    /// Builds a program of a main file and the modules; returns its path.
    ///
    /// In a program, unlike in a library, only code that `main` uses becomes machine code.
    ///
    /// # Errors
    /// If cargo cannot be run, or the program does not compile.
    pub fn build(&self, modules: &[GeneratedModule], main: &str) -> io::Result<PathBuf> {
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

    fn cargo(&self, command: CargoCommand) -> Command {
        let mut cargo = Command::new("cargo");
        match command {
            CargoCommand::Check => cargo.arg("check"),
            CargoCommand::Clippy => cargo.arg("clippy"),
            CargoCommand::Doc => cargo.args(["doc", "--no-deps"]),
        };
        cargo.args(["--message-format=json", "--quiet"]);
        if command == CargoCommand::Clippy {
            cargo.args(["--", "-D", "warnings"]);
        }
        cargo
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTDOCFLAGS", "-D warnings");
        cargo
    }
}

fn parse_errors(output: &str) -> BTreeMap<String, Vec<CompilerError>> {
    let mut errors: BTreeMap<String, Vec<CompilerError>> = BTreeMap::new();
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
            .map(module_of)
            .unwrap_or_default();
        errors.entry(module).or_default().push(CompilerError {
            code: message.code.map_or(message.message, |code| code.code),
            rendered: message.rendered.unwrap_or_default(),
        });
    }
    errors
}

/// The module of a file below `src/`.
fn module_of(file: &str) -> String {
    let inside = file.strip_prefix("src/").unwrap_or(file);
    let first = inside.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first).to_owned()
}

/// Removes all files but these.
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
    /// The file that called the macro, if the span is inside of one.
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
    fn a_file_below_a_module_belongs_to_the_module() {
        assert_eq!(module_of("src/widget.rs"), "widget");
        assert_eq!(module_of("src/widget/v1.rs"), "widget");
    }

    #[test]
    fn errors_in_a_macro_belong_to_the_module_that_called_it() {
        let line = r#"{"reason":"compiler-message","message":{"level":"error","code":{"code":"E0428"},"message":"twice","rendered":"twice!","spans":[{"file_name":"/registry/derive.rs","is_primary":true,"expansion":{"span":{"file_name":"src/c007_v1.rs","is_primary":false,"expansion":null}}}]}}"#;
        let found = parse_errors(&format!(
            "{line}\n{{\"reason\":\"build-finished\"}}\nnot json"
        ));
        assert_eq!(found["c007_v1"][0].code, "E0428");
    }
}
