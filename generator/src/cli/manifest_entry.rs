//! Writes entries of kopf.yaml in flow style, one line each.
//!
//! Written by hand: all that it needs of YAML is the quoting of scalars.

use crate::edit::ListItem;

/// An entry of the manifest, with those keys that have a value.
pub(super) fn list_item(keys: impl Iterator<Item = (&'static str, Option<String>)>) -> ListItem {
    let keys: Vec<String> = keys
        .filter_map(|(key, value)| Some(format!("{key}: {}", value?)))
        .collect();
    let flow = format!("{{{}}}", keys.join(", "));
    ListItem {
        block: vec![flow.clone()],
        flow,
    }
}

pub(super) fn optional_scalar(text: Option<&String>) -> Option<String> {
    text.map(|text| scalar(text))
}

pub(super) fn true_if(set: bool) -> Option<String> {
    set.then(|| "true".to_owned())
}

pub(super) fn label_filters(labels: &[String]) -> Option<String> {
    let filters: Vec<_> = labels.iter().map(|label| label_filter(label)).collect();
    (!filters.is_empty()).then(|| format!("{{{}}}", filters.join(", ")))
}

fn label_filter(label: &str) -> String {
    if let Some(name) = label.strip_prefix('!') {
        return format!("{}: absent", scalar(name));
    }
    match label.split_once('=') {
        Some((name, value @ ("present" | "absent"))) => {
            format!("{}: {{value: {value}}}", scalar(name))
        }
        Some((name, value)) => format!("{}: {}", scalar(name), scalar(value)),
        None => format!("{}: present", scalar(label)),
    }
}

/// A string as YAML, in quotes unless every reader takes the plain form for a string.
pub(super) fn scalar(text: &str) -> String {
    const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'))
        && !WORDS.contains(&text.to_lowercase().as_str());
    let duration = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, 'm' | 's' | 'h' | 'd'));
    if plain || duration {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_quoted_when_needed() {
        for (text, written) in [
            ("spec.size", "spec.size"),
            ("30s", "30s"),
            ("1", "\"1\""),
            ("yes", "\"yes\""),
            ("a: b", "\"a: b\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }

    #[test]
    fn labels_become_filters() {
        assert_eq!(label_filter("tier"), "tier: present");
        assert_eq!(label_filter("!tier"), "tier: absent");
        assert_eq!(label_filter("tier=gold"), "tier: gold");
        assert_eq!(label_filter("tier=present"), "tier: {value: present}");
    }
}
