//! Pages that follow from the code: a test compares them, and writes them if it is asked to.

use std::fs;

use super::repository;

/// With this variable the tests write the pages instead of comparing them.
const WRITE: &str = "KOPF_WRITE_DOCS";

/// Compares a page of `docs/` with what it should be.
pub(crate) fn compare(page: &str, expected: &str) {
    let path = repository().join("docs").join(page);
    if std::env::var_os(WRITE).is_some() {
        let folder = path.parent().expect("a page has a folder");
        fs::create_dir_all(folder).expect("docs/ is writable");
        fs::write(&path, expected).expect("docs/ is writable");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/{page} is not what the code says: {WRITE}=1 cargo test -p kopf-tests --test docs writes it"
    );
}

/// A text as a cell of a table: one line, without bars.
pub(crate) fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|")
}
