//! A crate that an earlier version made: `generate` renews what it owns, the user's files keep every
//! byte, and the changelog answers each error that the compiler then reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use kopf_tests::{TestFailure, TestResult, workspace};
use regex_lite::Regex;
use serde_json::Value;

/// A copy of the crate beside nothing of this repository but the runtime.
fn old_crate(folder: &Path) -> Result<PathBuf, TestFailure> {
    let root = folder.join("evc-operator");
    copy(&workspace::root().join("tests/upgrade/first"), &root)?;
    let manifest = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest)?;
    let runtime = workspace::root().join("runtime");
    let text = text.replace("../../runtime", &runtime.display().to_string());
    std::fs::write(&manifest, text)?;
    let lock = workspace::root().join("Cargo.lock");
    std::fs::copy(lock, root.join("Cargo.lock"))?;
    Ok(root)
}

fn copy(from: &Path, to: &Path) -> TestResult {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// All files of a crate but those that kopf-gen owns.
fn user_files(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, TestFailure> {
    let lock = std::fs::read_to_string(root.join(".kopf-gen/lock.json"))?;
    let lock: Value = serde_json::from_str(&lock)?;
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(root)?.display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if lock["files"].get(&name).is_none() && !name.starts_with(".kopf-gen/") {
                files.insert(path.clone(), std::fs::read(path)?);
            }
        }
    }
    Ok(files)
}

/// The messages of the compiler about a crate, if it does not compile.
fn compiler_errors(root: &Path) -> Result<Vec<String>, TestFailure> {
    let this = std::env::current_exe()?;
    let mut cargo = Command::new(env!("CARGO"));
    workspace::clear_cargo_variables(&mut cargo);
    let output = cargo
        .current_dir(root)
        // This test is in target/debug/deps.
        .env("CARGO_TARGET_DIR", this.ancestors().nth(3).unwrap_or(root))
        .args(["check", "--quiet", "--message-format=json"])
        .output()?;
    let lines = String::from_utf8(output.stdout)?;
    let messages = lines.lines().map(serde_json::from_str::<Value>);
    let mut errors = Vec::new();
    for message in messages {
        let message = &message?["message"];
        // The last error counts the others.
        if message["level"] == "error" && message["spans"] != serde_json::json!([]) {
            errors.extend(message["message"].as_str().map(str::to_owned));
        }
    }
    if errors.is_empty() && !output.status.success() {
        return Err(TestFailure::new(String::from_utf8_lossy(&output.stderr)));
    }
    Ok(errors)
}

/// The section of the changelog for those who upgrade.
fn what_to_do() -> Result<String, TestFailure> {
    let changelog = std::fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
    let section = changelog
        .split("\n### ")
        .find(|it| it.starts_with("What to do"));
    let section = section.ok_or_else(|| TestFailure::new("the changelog has no such section"))?;
    Ok(section.to_owned())
}

#[test]
fn an_earlier_crate_is_renewed_and_the_changelog_answers_each_compiler_error() -> TestResult {
    let folder = tempfile::tempdir()?;
    let root = old_crate(folder.path())?;
    let before = user_files(&root)?;
    let output = Command::new(workspace::build_program("kopf-gen")?)
        .current_dir(&root)
        .arg("generate")
        .output()?;
    assert!(output.status.success(), "{output:?}");
    for (path, content) in &before {
        assert_eq!(&std::fs::read(path)?, content, "{}", path.display());
    }

    let section = what_to_do()?;
    let errors = compiler_errors(&root)?;
    assert!(!errors.is_empty(), "names have changed since");
    let name = Regex::new("`([A-Za-z_]+)`")?;
    for error in &errors {
        let mut names = name.captures_iter(error).map(|it| format!("`{}`", &it[1]));
        let is_answered = names.any(|name| section.contains(&name));
        assert!(is_answered, "the changelog does not answer: {error}");
    }

    // The compiler's tool writes the lock file.
    let before: Vec<_> = before
        .into_iter()
        .filter(|(path, _)| !path.ends_with("Cargo.lock"))
        .collect();
    // Without a terminal nothing is written before `--yes` allows it.
    let upgrade = |arguments: &[&str]| {
        Command::new(workspace::build_program("kopf-gen")?)
            .current_dir(&root)
            .arg("upgrade")
            .args(arguments)
            .output()
            .map_err(TestFailure::from)
    };
    let asked = upgrade(&[])?;
    assert_eq!(asked.status.code(), Some(3), "{asked:?}");
    let shown = String::from_utf8(asked.stdout)?;
    assert!(
        shown.contains("+    async fn create_fn(&self, cx: &mut ChangeContext<"),
        "{shown}"
    );
    for (path, content) in &before {
        assert_eq!(&std::fs::read(path)?, content, "{}", path.display());
    }

    // The renames are all that has to be done.
    let done = upgrade(&["--yes"])?;
    assert!(done.status.success(), "{done:?}");
    for (path, content) in &before {
        let is_renamed = path.ends_with("src/handlers/ephemeral_volume_claim.rs");
        assert_eq!(
            &std::fs::read(path)? != content,
            is_renamed,
            "{}",
            path.display()
        );
    }
    assert_eq!(compiler_errors(&root)?, Vec::<String>::new());
    let again = upgrade(&[])?;
    assert!(again.status.success(), "{again:?}");
    Ok(())
}
