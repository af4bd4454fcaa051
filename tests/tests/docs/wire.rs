//! The page about annotations has the names that the code writes.

use std::fs;

use kopf_runtime::{APPLIED_ANNOTATION, OPERATOR_LABEL, OWNER_LABEL, PersistenceSettings};

use super::repository;

fn page() -> String {
    fs::read_to_string(repository().join("docs/wire.md")).expect("the page is there")
}

#[test]
fn the_names_on_objects_are_those_of_the_code() {
    let persistence = PersistenceSettings::default();
    let (prefix, page) = (persistence.prefix, page());
    let state = format!("{prefix}/last-handled-configuration");
    let notes = format!("{prefix}/last-seen-states");
    let own = [APPLIED_ANNOTATION, OPERATOR_LABEL, OWNER_LABEL];
    for name in [&*persistence.finalizer, &state, &notes]
        .into_iter()
        .chain(own)
    {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not on the page"
        );
    }
}

#[test]
fn the_entries_of_a_record_are_those_of_the_code() {
    let source = repository().join("runtime/core/src/progress/record.rs");
    let source = fs::read_to_string(source).expect("the source is readable");
    let list = source
        .split("const ENTRIES")
        .nth(1)
        .and_then(|it| it.split("];").next());
    let entries: Vec<&str> = list
        .expect("the entries are there")
        .split('"')
        .skip(1)
        .step_by(2)
        .collect();
    let page = page();
    let section = page
        .split("\n## Progress of a handler")
        .nth(1)
        .expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.collect::<Vec<_>>(), entries);
}
