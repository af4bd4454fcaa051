//! Runs what the documentation tells a reader to type.

#[path = "docs/blocks.rs"]
mod blocks;
#[path = "docs/brevity.rs"]
mod brevity;
#[path = "docs/named_tests.rs"]
mod named_tests;
#[path = "docs/settings.rs"]
mod settings;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::shell_blocks;
use kopf_tests::{TestFailure, TestResult, workspace};
use tempfile::TempDir;

/// Running these here would run this very test again; CI runs them instead.
const RUN_BY_CI: [&str; 2] = ["cargo test --workspace", ".ci/run"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are a folder of the repository")
        .to_owned()
}

/// A copy of the checkout in a folder of its own, so that `../my-operator` is a new folder.
fn fresh_checkout() -> (TempDir, PathBuf) {
    let parent = TempDir::new().expect("a temporary folder can be made");
    let checkout = parent.path().join("kopf-gen");
    fs::create_dir(&checkout).expect("the temporary folder is writable");
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(repository())
        .output()
        .expect("git lists the checkout");
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    for name in String::from_utf8(listed.stdout)
        .expect("paths are UTF-8")
        .split_terminator('\0')
    {
        let (from, to) = (repository().join(name), checkout.join(name));
        let Ok(kind) = fs::symlink_metadata(&from) else {
            continue;
        };
        fs::create_dir_all(to.parent().expect("a file has a folder"))
            .expect("the copy is writable");
        if kind.is_symlink() {
            let target = fs::read_link(&from).expect("a symbolic link can be read");
            std::os::unix::fs::symlink(target, &to).expect("a symbolic link can be made");
        } else {
            fs::copy(&from, &to).expect("a file can be copied");
        }
    }
    (parent, checkout)
}

/// Types the commands of a page, in order, as a reader in a fresh checkout would.
fn follow(markdown: &str) -> Result<(), String> {
    follow_with(markdown, &[])
}

/// The same with more variables.
fn follow_with(markdown: &str, variables: &[(&str, OsString)]) -> Result<(), String> {
    let script: String = shell_blocks(markdown)
        .iter()
        .flat_map(|block| block.lines())
        .filter(|line| !RUN_BY_CI.iter().any(|command| line.trim() == *command))
        .map(|line| format!("{line}\n"))
        .collect();
    let (_parent, checkout) = fresh_checkout();
    let output = Command::new("bash")
        .args(["-euxo", "pipefail", "-c", &script])
        .current_dir(&checkout)
        .env("CARGO_TARGET_DIR", repository().join("target"))
        .env("CARGO_TERM_COLOR", "never")
        .envs(variables.iter().cloned())
        .output()
        .expect("bash runs");
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

#[test]
fn the_readme_works_as_written() {
    let readme =
        fs::read_to_string(repository().join("README.md")).expect("the README is readable");
    follow(&readme)
        .unwrap_or_else(|failure| panic!("README.md does not work as written: {failure}"));
}

#[test]
fn the_page_about_clusters_works_as_written() -> TestResult {
    let program = workspace::build_program("kopf-gen")?;
    let page = fs::read_to_string(repository().join("docs/cluster.md"))?;
    let data = TempDir::new()?;
    let mut path = OsString::from(program.parent().unwrap_or(&program));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let variables = [
        ("PATH", path),
        ("XDG_DATA_HOME", data.path().into()),
        ("KOPF_GEN_RUNTIME_PATH", repository().into()),
    ];
    follow_with(&page, &variables).map_err(TestFailure::new)
}

#[test]
fn a_command_that_fails_fails_its_page() {
    let failure = follow("```sh\ntest -f Cargo.toml\n```\n```sh\nfalse\ntrue\n```\n")
        .expect_err("`false` fails");
    assert!(
        failure.contains("+ test -f Cargo.toml") && !failure.contains("+ true"),
        "{failure}"
    );
}

#[test]
fn only_shell_blocks_are_commands() {
    let page = "text\n```sh\none\n```\n```text\nnot run\n```\n\n```sh\ntwo # comment\nthree\n```\n";
    assert_eq!(shell_blocks(page), ["one\n", "two # comment\nthree\n"]);
}
