//! Generates the types of the corpus with kopium, for comparison.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::command_cost::{self, CommandCost};
use crate::corpus::DefinitionFile;
use crate::scratch_crate::{CrateDependencies, GeneratedModule, ModuleFile};

/// The measured version.
pub const VERSION: &str = "0.24.1";

/// The dependencies of its modules: the crates that its derives name.
pub const DEPENDENCIES: CrateDependencies = CrateDependencies {
    generator: "kopium",
    dependencies: r#"k8s-openapi = { version = "0.29", default-features = false, features = ["latest", "schemars", "std"] }
kube = { version = "5.0", default-features = false, features = ["derive"] }
schemars = "1.2"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
"#,
};

/// The name of the type of whole objects in a module of kopium, if there is one.
#[must_use]
pub fn root(text: &str) -> Option<String> {
    let attribute = text.lines().find(|line| line.starts_with("#[kube("))?;
    let quoted = |key: &str| {
        let (_, rest) = attribute.split_once(&format!(", {key} = \""))?;
        rest.split('"').next().map(str::to_owned)
    };
    quoted("root").or_else(|| quoted("kind"))
}

/// The modules and errors of kopium.
#[derive(Clone, Debug, Default)]
pub struct KopiumOutput {
    /// A module for each file that it could read.
    pub modules: Vec<GeneratedModule>,
    /// The files that it could not read, with the first line of its error.
    pub failures: Vec<(String, String)>,
    /// The modules in which no type is a custom resource.
    pub rootless: Vec<String>,
    /// CPU time of all its processes, one per file.
    pub cost: CommandCost,
}

/// Installs kopium into a folder, unless it is there already.
///
/// # Errors
/// If cargo cannot be run or does not succeed.
pub fn install(folder: &Path) -> io::Result<()> {
    if folder.join("bin/kopium").exists() {
        return Ok(());
    }
    let status = Command::new("cargo")
        .args([
            "install",
            "kopium",
            "--locked",
            "--version",
            VERSION,
            "--root",
        ])
        .arg(folder)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other("kopium could not be installed"))
    }
}

/// Runs kopium over files with its `--auto` settings: one process, one version each.
///
/// # Errors
/// If kopium cannot be started.
pub fn generate(folder: &Path, files: &[&DefinitionFile]) -> io::Result<KopiumOutput> {
    let mut generated = KopiumOutput::default();
    let before = command_cost::children()?;
    for file in files {
        let output = Command::new(folder.join("bin/kopium"))
            .args(["--auto", "--filename"])
            .arg(&file.path)
            .output()?;
        if output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let name = module_name(file);
            if root(&text).is_none() {
                generated.rootless.push(file.stem.clone());
            }
            let files = vec![ModuleFile {
                path: format!("{name}.rs"),
                text,
            }];
            generated.modules.push(GeneratedModule { name, files });
        } else {
            let error = String::from_utf8_lossy(&output.stderr);
            generated.failures.push((
                file.stem.clone(),
                error.lines().next().unwrap_or_default().to_owned(),
            ));
        }
    }
    let after = command_cost::children()?;
    generated.cost = CommandCost {
        cpu: after.cpu.saturating_sub(before.cpu),
        ..after
    };
    Ok(generated)
}

/// The name of the module for a file.
#[must_use]
pub fn module_name(file: &DefinitionFile) -> String {
    format!("c{:03}", file.index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_kind_unless_it_was_renamed() {
        let module = |more: &str| format!("#[kube(group = \"g\", kind = \"postgresql\"{more})]\n");
        assert_eq!(root(&module("")).as_deref(), Some("postgresql"));
        assert_eq!(
            root(&module(", root = \"Postgresql\"")).as_deref(),
            Some("Postgresql")
        );
        assert_eq!(root("pub struct Empty {}"), None);
    }
}
