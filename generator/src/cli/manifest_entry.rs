//! Writes entries of kopf.yaml in flow style, one line each.
//!
//! Written by hand: all that it needs of YAML is the quoting of scalars.

use std::str::FromStr;

use serde_json::Value;

use crate::diagnostic::{Diagnostics, Sources};
use crate::edit::ListItem;
use crate::load::yaml::{self, Dialect};

/// A key of an entry, and its value as YAML if it has one.
pub(super) type EntryKey = (&'static str, Option<String>);

/// A value of a command line as YAML of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FlowText(String);

impl FromStr for FlowText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sources = Sources::new();
        let source = sources.add("the value", text);
        let mut diagnostics = Diagnostics::new();
        let documents = yaml::parse(&sources, source, Dialect::Core, &mut diagnostics);
        match &documents[..] {
            [value] if !diagnostics.has_errors() => Ok(Self(flow(&value.to_json()))),
            _ => Err("it is not a value in YAML".to_owned()),
        }
    }
}

/// An entry of the manifest, with those keys that have a value.
pub(super) fn list_item(keys: impl Iterator<Item = EntryKey>) -> ListItem {
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

pub(super) fn optional_text(text: Option<&FlowText>) -> Option<String> {
    text.map(|text| text.0.clone())
}

/// A text, a list of several, or nothing.
pub(super) fn list_of(texts: &[String]) -> Option<String> {
    match texts {
        [] => None,
        [text] => Some(scalar(text)),
        several => {
            let several: Vec<String> = several.iter().map(|text| scalar(text)).collect();
            Some(format!("[{}]", several.join(", ")))
        }
    }
}

pub(super) fn true_if(set: bool) -> Option<String> {
    set.then(|| "true".to_owned())
}

/// Filters on labels or annotations.
pub(super) fn metadata_filters(filters: &[String]) -> Option<String> {
    let filters: Vec<_> = filters.iter().map(|it| metadata_filter(it)).collect();
    (!filters.is_empty()).then(|| format!("{{{}}}", filters.join(", ")))
}

fn metadata_filter(filter: &str) -> String {
    if let Some(name) = filter.strip_prefix('!') {
        return format!("{}: absent", scalar(name));
    }
    let Some((name, value)) = filter.split_once('=') else {
        return format!("{}: present", scalar(filter));
    };
    let test = match value {
        "present" | "absent" => format!("{{value: {value}}}"),
        // No label has a brace in its value.
        value if value.starts_with('{') => match value.parse::<FlowText>() {
            Ok(test) => test.0,
            Err(_) => scalar(value),
        },
        value => scalar(value),
    };
    format!("{}: {test}", scalar(name))
}

/// A value in the flow style of YAML.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let entries = entries.iter();
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}: {}", scalar(key), flow(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
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
        Value::from(text).to_string()
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
        for (label, filter) in [
            ("tier", "tier: present"),
            ("!tier", "tier: absent"),
            ("tier=gold", "tier: gold"),
            ("tier=present", "tier: {value: present}"),
            ("tier={any: [gold, '1']}", "tier: {any: [gold, \"1\"]}"),
            ("tier={", "tier: \"{\""),
        ] {
            assert_eq!(metadata_filter(label), filter);
        }
    }

    #[test]
    fn values_are_one_value_of_yaml_however_they_are_written() {
        for (text, written) in [
            ("gold", "gold"),
            ("10Gi", "\"10Gi\""),
            ("3", "3"),
            ("'3'", "\"3\""),
            ("{predicate: is_small}", "{predicate: is_small}"),
            ("[a, {b: null}]", "[a, {b: null}]"),
            ("a, b", "\"a, b\""),
            ("a, fn: b", "{\"a, fn\": b}"),
        ] {
            let value: Result<FlowText, _> = text.parse();
            assert_eq!(value, Ok(FlowText(written.to_owned())), "{text}");
        }
        for text in ["", "{a: b", "a\n---\nb"] {
            assert!(text.parse::<FlowText>().is_err(), "{text}");
        }
    }
}
