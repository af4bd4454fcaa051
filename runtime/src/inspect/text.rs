//! Texts of the cluster for a terminal: harmless, short, with times as people say them.

use std::time::Duration;

use jiff::Timestamp;
use kopf_core::inspection::Inspection;
use kopf_core::object::diff::{DiffItem, DiffOp, OldValue};
use kopf_core::time;

/// The longest value that is shown in full.
const LONGEST_VALUE: usize = 60;

/// The message of an error and of its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    printable(&text)
}

/// A text in one line, without what would control the terminal or reorder its letters.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(letter.escape_unicode());
            }
            letter if letter.is_control() => shown.extend(letter.escape_unicode()),
            letter => shown.push(letter),
        }
    }
    shown
}

/// The beginning of a text if it is long.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let kept: String = text.chars().take(longest.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A duration as kubectl shows it: `45s`, `10m`, `5h`, `3d`.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if !seconds.is_multiple_of(60) => format!("{}m{}s", seconds / 60, seconds % 60),
        120..10_800 => format!("{}m", seconds / 60),
        10_800..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The time since a moment.
pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    duration(time::elapsed(since, now))
}

/// The time until a moment.
pub(super) fn until(at: Timestamp, now: Timestamp) -> String {
    if at <= now {
        "now".to_owned()
    } else {
        format!("in {}", duration(time::elapsed(now, at)))
    }
}

/// A change in one line, without the values of a secret object.
pub(super) fn change(inspection: &Inspection, item: &DiffItem) -> String {
    let path = if item.path.parts().is_empty() {
        "the object".to_owned()
    } else {
        item.path.to_string()
    };
    let path = printable(&path);
    let verb = match item.op {
        DiffOp::Add => "added",
        DiffOp::Change => "changed",
        DiffOp::Remove => "removed",
    };
    let shown =
        |value: &serde_json::Value| shortened(&printable(&value.to_string()), LONGEST_VALUE);
    let (old, new) = inspection.shown_values(&item.old, item.new.as_ref());
    match (old.map(shown), new.map(shown)) {
        _ if inspection.is_sensitive => format!("{path} {verb}"),
        (Some(old), Some(new)) => format!("{path}: {old} -> {new}"),
        (None, Some(new)) if item.old == OldValue::Unknown => format!("{path}: (unknown) -> {new}"),
        (None, Some(new)) => format!("{path} added: {new}"),
        (Some(old), None) => format!("{path} removed: {old}"),
        (None, None) => format!("{path} {verb}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_cluster_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("one\ntwo"), "one two");
        assert_eq!(printable("\u{202e}abc"), "\\u{202e}abc");
    }

    #[test]
    fn durations_have_the_precision_that_people_need() {
        let shown = |seconds: u64| duration(Duration::from_secs(seconds));
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(119), "119s");
        assert_eq!(shown(299), "4m59s");
        assert_eq!(shown(3_600), "60m");
        assert_eq!(shown(36_000), "10h");
        assert_eq!(shown(864_000), "10d");
    }
}
