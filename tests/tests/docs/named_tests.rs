//! Every test that the table of parity names exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kopf_tests::{TestResult, workspace};

/// Fewer names than this mean that the page is not read as it should be.
const FEWEST: usize = 300;

/// The names of all functions in the tests and in the sources with their unit tests.
pub(crate) fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != "golden" {
            functions(&path, names);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let found = text.split("fn ").skip(1).map(|rest| {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                rest.chars().take_while(|c| is_name(*c)).collect()
            });
            names.extend(found.filter(|it: &String| !it.is_empty()));
            names.extend(path.file_stem().map(|it| it.to_string_lossy().into_owned()));
        }
    }
}

/// The paths of tests in the last column of the tables.
fn named(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.filter(|it| it.contains("::")).collect()
}

#[test]
fn the_tests_that_the_page_about_parity_names_exist() -> TestResult {
    let root = workspace::root();
    let page = fs::read_to_string(root.join("docs/parity.md"))?;
    let mut known = BTreeSet::new();
    for folder in ["examples", "generator", "runtime", "tests"] {
        functions(&root.join(folder), &mut known);
    }
    let named = named(&page);
    assert!(named.len() > FEWEST, "only {} names", named.len());
    let missing: Vec<&&str> = named
        .iter()
        .filter(|path| {
            let mut parts = path.rsplit("::");
            let last = parts.next().unwrap_or_default();
            let name = if last == "*" {
                parts.next().unwrap_or_default()
            } else {
                last
            };
            let name = name.trim_start_matches("runtime: ");
            !known.contains(name)
        })
        .collect();
    assert!(missing.is_empty(), "these tests do not exist: {missing:#?}");
    Ok(())
}

#[test]
fn names_are_read_from_the_last_column() {
    let page = "| a `b::c` | d | `runtime`: `one::two`, `three::*` |\n`four::five`\n";
    assert_eq!(named(page), ["one::two", "three::*"]);
}
