//! Differences between files as people read them.

use similar::TextDiff;

use crate::write::{EditConflict, FileChange};

/// A change as a unified diff.
#[must_use]
pub fn of_change(change: &FileChange) -> String {
    match change {
        FileChange::Create { path, after } => {
            unified(b"", after, "/dev/null", &format!("b/{path}"))
        }
        FileChange::Update {
            path,
            before,
            after,
        } => unified(before, after, &format!("a/{path}"), &format!("b/{path}")),
        FileChange::Delete { path, before } => {
            unified(before, "", &format!("a/{path}"), "/dev/null")
        }
    }
}

/// What a run would do to a file that was edited by hand.
#[must_use]
pub fn of_conflict(conflict: &EditConflict) -> String {
    let EditConflict {
        path,
        on_disk,
        planned,
    } = conflict;
    unified(
        on_disk,
        planned,
        &format!("{path} (edited)"),
        &format!("{path} (generated)"),
    )
}

fn unified(before: &[u8], after: &str, old: &str, new: &str) -> String {
    let before = String::from_utf8_lossy(before);
    TextDiff::from_lines(before.as_ref(), after)
        .unified_diff()
        .header(old, new)
        .to_string()
}
