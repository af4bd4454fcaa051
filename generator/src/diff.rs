//! Unified diffs of changed and of edited files.

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

/// The unified diff from a hand-edited file to its generated text.
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
