//! The arguments of commands that are not run: the programs, packages and tests exist, and the
//! programs accept the arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use kopf_tests::{TestFailure, TestResult, workspace};

use super::blocks::{self, Block};
use super::named_tests::functions;

/// The operator that takes the place of the reader's.
const OPERATOR: &str = "minimal-operator";

/// The words of a command, without its comment.
fn words(line: &str) -> Vec<&str> {
    let command = line.split(" #").next().unwrap_or_default();
    command.split_whitespace().collect()
}

/// What follows an option among the arguments of cargo.
fn option<'a>(arguments: &[&'a str], name: &str) -> Option<&'a str> {
    let position = arguments.iter().position(|it| *it == name)?;
    arguments.get(position + 1).copied()
}

/// A program of the workspace; cargo is asked once for each.
fn program(package: &str) -> Result<PathBuf, TestFailure> {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().expect("no test panics while it builds");
    if let Some(program) = built.get(package) {
        return Ok(program.clone());
    }
    let program = workspace::build_program(package)?;
    built.insert(package.to_owned(), program.clone());
    Ok(program)
}

/// Asks a program for help after the arguments: it reads them first.
fn accepts(program: &Path, arguments: &[&str]) -> TestResult {
    let mut command = Command::new(program);
    let output = command.args(arguments).arg("--help").output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let accepted = output.status.success();
    let failed = || TestFailure::new(format!("{arguments:?}: {errors}"));
    accepted.then_some(()).ok_or_else(failed)
}

fn exists(path: &Path) -> TestResult {
    let failed = || TestFailure::new(format!("there is no {}", path.display()));
    path.exists().then_some(()).ok_or_else(failed)
}

/// The folder of a package of the workspace.
fn folder(package: &str) -> PathBuf {
    let name = package.strip_prefix("kopf-").unwrap_or(package);
    let folder = match name {
        "gen" => "generator".to_owned(),
        "tests" => "tests".to_owned(),
        name => format!("tests/{name}"),
    };
    workspace::root().join(folder)
}

/// `control-plane` has commands without options, which its usage lists.
fn control_plane(arguments: &[&str]) -> TestResult {
    let usage = Command::new(env!("CARGO_BIN_EXE_control-plane")).output()?;
    let usage = String::from_utf8_lossy(&usage.stderr).into_owned();
    let listed = |name: &str| usage.contains(&format!("\n  {name} "));
    let failed = || TestFailure::new(format!("{arguments:?}: {usage}"));
    let first = arguments.first().copied().unwrap_or_default();
    listed(first).then_some(()).ok_or_else(failed)
}

/// The benchmarks are a workspace of their own, which no test builds: their source has the names.
fn benchmark(name: &str) -> TestResult {
    let source = std::fs::read_to_string(workspace::root().join("tests/bench/src/main.rs"))?;
    let variant: String = name
        .split('-')
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect();
    let failed = || TestFailure::new(format!("there is no benchmark {name}"));
    let declared = source.contains(&format!("    {variant}("));
    declared.then_some(()).ok_or_else(failed)
}

fn cargo_run(folder: Option<&str>, cargo: &[&str], own: &[&str]) -> TestResult {
    if folder == Some("tests/bench") {
        return benchmark(own.first().copied().unwrap_or_default());
    }
    match (option(cargo, "-p"), option(cargo, "--bin")) {
        (Some("kopf-tests"), Some("control-plane")) => control_plane(own),
        (Some(package), None) => accepts(&program(package)?, own),
        _ => accepts(&program(OPERATOR)?, own),
    }
}

/// The target of a test command exists, and the tests that it chooses do.
fn cargo_test(cargo: &[&str], own: &[&str]) -> TestResult {
    if let (Some(package), Some(target)) = (option(cargo, "-p"), option(cargo, "--test")) {
        exists(&folder(package).join("tests").join(format!("{target}.rs")))?;
    }
    let mut known = BTreeSet::new();
    functions(&workspace::root().join("tests"), &mut known);
    for filter in own.iter().filter(|it| !it.starts_with('-')) {
        let name = filter.rsplit("::").next().unwrap_or_default();
        let found = known.iter().any(|it| it.contains(name));
        let failed = || TestFailure::new(format!("there is no test {filter}"));
        found.then_some(()).ok_or_else(failed)?;
    }
    Ok(())
}

/// Checks one command; `folder` is where the block has gone to.
fn check<'a>(line: &'a str, folder_of_block: &mut Option<&'a str>) -> TestResult {
    let words = words(line);
    let end = words.iter().position(|it| *it == "--");
    let (cargo, own) = words.split_at(end.unwrap_or(words.len()));
    let own = own.get(1..).unwrap_or_default();
    match words[..] {
        ["cd", path] => {
            *folder_of_block = Some(path);
            exists(&workspace::root().join(path))
        }
        ["cargo", "run", ..] => cargo_run(*folder_of_block, cargo, own),
        ["cargo", "test", ..] => cargo_test(cargo, own),
        ["cargo", "install", ..] => {
            let path = option(cargo, "--path").unwrap_or_default();
            exists(&workspace::root().join(path).join("Cargo.toml"))
        }
        ["cargo", "build", ref rest @ ..] => {
            let packages = rest.iter().filter(|it| it.starts_with("kopf-"));
            let mut folders = packages.map(|it| folder(it).join("Cargo.toml"));
            folders.try_for_each(|it| exists(&it))
        }
        ["kopf-gen", ref rest @ ..] => accepts(&program("kopf-gen")?, rest),
        // What the reason of the block names as missing, and a variable.
        ["docker" | "export", ..] => Ok(()),
        _ => Err(TestFailure::new("no check knows this command")),
    }
}

/// The commands of the block that are wrong.
fn wrong_commands(block: &Block) -> Vec<String> {
    let mut folder = None;
    let mut wrong = Vec::new();
    for line in block.text.lines() {
        if let Err(failure) = check(line, &mut folder) {
            wrong.push(format!("{}: {line}: {}", block.place(), failure.message()));
        }
    }
    wrong
}

#[test]
fn commands_that_are_not_run_have_arguments_that_their_programs_accept() {
    let blocks = blocks::all();
    let not_run = blocks
        .iter()
        .filter(|it| it.note("arguments only").is_some());
    let problems: Vec<String> = not_run.flat_map(wrong_commands).collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn a_wrong_argument_package_test_or_benchmark_is_found() {
    let lines = [
        "kopf-gen dev --no-such-option",
        "cargo run -- --no-such-option",
        "cargo test -p kopf-tests --test no_such_target",
        "cargo test -p kopf-tests --test parity -- no_such_test",
        "cargo build -p kopf-no-such-package",
        "no-such-program",
    ];
    for line in lines {
        assert!(check(line, &mut None).is_err(), "{line}");
    }
    let mut folder = Some("tests/bench");
    assert!(check("cargo run --release -- no-such-benchmark", &mut folder).is_err());
}
