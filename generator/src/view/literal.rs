//! Literals of Rust for texts and JSON values of any content.

use serde_json::{Number, Value};

/// The most values in one `json!`, whose expansion is recursive and limited by the compiler.
const MOST_VALUES: usize = 24;

/// A string literal.
pub(super) fn string(text: &str) -> String {
    format!("{text:?}")
}

/// A literal of a JSON text, raw so that it stays readable, with as many hashes as it needs.
pub(super) fn json_text(text: &str) -> String {
    let text: String = text.chars().map(escaped_in_json).collect();
    let mut hashes = "#".to_owned();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("r{hashes}\"{text}\"{hashes}")
}

/// A character inside of a JSON text; one that rustc rejects can only be inside of a string there.
fn escaped_in_json(c: char) -> String {
    let is_visible = c == '\n' || !c.escape_debug().to_string().starts_with("\\u{");
    match u16::try_from(u32::from(c)) {
        Ok(code) if !is_visible => format!("\\u{code:04x}"),
        _ => c.to_string(),
    }
}

/// A JSON value as an expression of the type `serde_json::Value`.
pub(super) fn json(value: &Value) -> String {
    if size(value) > MOST_VALUES {
        let text = string(&value.to_string());
        return format!(
            "serde_json::from_str::<serde_json::Value>({text}).expect(\"this is JSON\")"
        );
    }
    format!("serde_json::json!({})", inner(value))
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(entries) => entries.values().map(size).sum(),
        _ => 0,
    }
}

/// A value inside of `json!`, where strings need Rust's escapes, not JSON's.
fn inner(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => self::number(number),
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inner).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", string(key), inner(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A number; without a suffix, rustc takes an integer for an `i32`.
fn number(number: &Number) -> String {
    let suffix = match (number.as_i64(), number.as_u64()) {
        (Some(value), _) if i32::try_from(value).is_ok() => "",
        (Some(_), _) => "i64",
        (None, Some(_)) => "u64",
        (None, None) => "",
    };
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_strings_end_where_they_should() {
        assert_eq!(json_text("{}"), "r#\"{}\"#");
        assert_eq!(json_text("\"#\"##"), "r###\"\"#\"##\"###");
        assert_eq!(json_text("\"\u{202e}\""), "r#\"\"\\u202e\"\"#");
    }

    #[test]
    fn large_values_do_not_reach_the_recursion_limit() {
        let items: Value = (0..MOST_VALUES).collect();
        assert!(json(&items).starts_with("serde_json::from_str"));
    }
}
