//! Runs what the documentation tells a reader to type.

#[path = "docs/arguments.rs"]
mod arguments;
#[path = "docs/blocks.rs"]
mod blocks;
#[path = "docs/brevity.rs"]
mod brevity;
#[path = "docs/chapters.rs"]
mod chapters;
#[path = "docs/checked.rs"]
mod checked;
#[path = "docs/contexts.rs"]
mod contexts;
#[path = "docs/dependency.rs"]
mod dependency;
#[path = "docs/generated_page.rs"]
mod generated_page;
#[path = "docs/guides.rs"]
mod guides;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/manifests.rs"]
mod manifests;
#[path = "docs/named_tests.rs"]
mod named_tests;
#[path = "docs/pictures.rs"]
mod pictures;
#[path = "docs/python.rs"]
mod python;
#[path = "docs/reference.rs"]
mod reference;
#[path = "docs/scopes.rs"]
mod scopes;
#[path = "docs/settings.rs"]
mod settings;
#[path = "docs/uninstalling.rs"]
mod uninstalling;
#[path = "docs/wire.rs"]
mod wire;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::{blocks as blocks_in, script};
use kopf_tests::{Helm, Kubectl, TestFailure, TestResult, workspace};
use tempfile::TempDir;

/// Takes the place of a container engine: the image has a recipe in the folder that is named.
const DOCKER: &str = "docker() { if [ $1 = build ]; then test -f $4/Dockerfile; fi; }\n";

/// The pages whose commands a test of their own types.
const FOLLOWED: [&str; 6] = [
    "README.md",
    "docs/cluster.md",
    "docs/dev.md",
    "docs/start.md",
    "docs/tutorial.md",
    "docs/uninstalling.md",
];

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
    run(&script(&blocks_in(Path::new(""), markdown)), variables)
}

/// Runs a script in a fresh checkout.
fn run(script: &str, variables: &[(&str, OsString)]) -> Result<(), String> {
    let (_parent, checkout) = fresh_checkout();
    let mut bash = Command::new("bash");
    // The reader's shell does not have them.
    workspace::clear_cargo_variables(&mut bash);
    let output = bash
        .args(["-euxo", "pipefail", "-c", script])
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
    let data = TempDir::new().expect("a temporary folder can be made");
    // The cluster of the page outlives its commands.
    let end = "```sh\ntrap 'cargo run -p kopf-gen -- cluster reset' EXIT\n```\n";
    follow_with(
        &format!("{end}{readme}"),
        &[("XDG_DATA_HOME", data.path().into())],
    )
    .unwrap_or_else(|failure| panic!("README.md does not work as written: {failure}"));
}

/// Types the commands of a page with `kopf-gen` in the path, and clusters in a folder of their own.
fn follow_with_program(page: &str) -> TestResult {
    let program = workspace::build_program("kopf-gen")?;
    let page = fs::read_to_string(repository().join(page))?;
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

#[tokio::test]
async fn the_first_steps_work_as_written() -> TestResult {
    follow_on_cluster("docs/start.md", "start").await
}

#[tokio::test]
async fn the_tutorial_works_as_written() -> TestResult {
    follow_on_cluster("docs/tutorial.md", "tutorial").await
}

/// Types the commands of a page that uses kubectl and Helm on a cluster of this name.
async fn follow_on_cluster(page: &str, cluster: &str) -> TestResult {
    let text = fs::read_to_string(repository().join(page))?;
    let page = script(&blocks_in(Path::new(page), &text));
    follow_script_on_cluster(&format!("{DOCKER}{page}"), cluster).await
}

/// The same with the text of a page.
async fn follow_text_on_cluster(text: &str, cluster: &str) -> TestResult {
    follow_script_on_cluster(&script(&blocks_in(Path::new(""), text)), cluster).await
}

/// The same with a script.
async fn follow_script_on_cluster(script: &str, cluster: &str) -> TestResult {
    let (kubectl, helm) = (Kubectl::obtain().await?, Helm::obtain().await?);
    let program = workspace::build_program("kopf-gen")?;
    let data = TempDir::new()?;
    let programs = [&program, kubectl.program(), helm.program()];
    let folders = programs.into_iter().filter_map(Path::parent);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = folders
        .map(Path::to_owned)
        .chain(std::env::split_paths(&others));
    let variables = [
        ("PATH", std::env::join_paths(path)?),
        ("XDG_DATA_HOME", data.path().into()),
        ("HELM_CACHE_HOME", data.path().into()),
        ("KOPF_GEN_RUNTIME_PATH", repository().into()),
    ];
    let followed = run(script, &variables).map_err(TestFailure::new);
    if followed.is_err() {
        let reset = ["cluster", "reset", cluster];
        let mut kopf_gen = Command::new(&program);
        kopf_gen.env("XDG_DATA_HOME", data.path()).args(reset);
        kopf_gen.output()?;
    }
    followed
}

#[test]
fn the_page_about_clusters_works_as_written() -> TestResult {
    follow_with_program("docs/cluster.md")
}

#[test]
fn the_page_about_development_works_as_written() -> TestResult {
    follow_with_program("docs/dev.md")
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
