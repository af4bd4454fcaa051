//! JSON text exactly as Python's `json.dumps(…, separators=(",", ":"))` writes it.
//!
//! Kopf reads and compares stored annotations, so their bytes must be those that it writes.
//! serde_json escapes fewer characters and writes floats in another form.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Writes a value compactly, in insertion order, with every non-ASCII character escaped.
#[must_use]
pub fn to_ascii(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(text, number),
        Value::String(string) => write_string(text, string),
        Value::Array(items) => write_array(text, items),
        Value::Object(map) => write_map(text, map),
    }
}

fn write_array(text: &mut String, items: &[Value]) {
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_value(text, item);
    }
    text.push(']');
}

fn write_map(text: &mut String, map: &Map<String, Value>) {
    text.push('{');
    for (index, (key, value)) in map.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_string(text, key);
        text.push(':');
        write_value(text, value);
    }
    text.push('}');
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(text, "\\u{unit:04x}").expect("writing into a string never fails");
                }
            }
        }
    }
    text.push('"');
}

fn write_number(text: &mut String, number: &Number) {
    match number.as_f64() {
        Some(float) if number.is_f64() => write_float(text, float),
        _ => text.push_str(&number.to_string()),
    }
}

/// Python writes floats by `repr`: shortest digits, scientific below 1e-4 and from 1e16 on.
fn write_float(text: &mut String, float: f64) {
    let scientific = format!("{float:e}");
    let exponent: i32 = scientific
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .expect("`{:e}` always prints a decimal exponent");
    if float != 0.0 && !(-4..16).contains(&exponent) {
        let (mantissa, _) = scientific
            .split_once('e')
            .expect("`{:e}` always prints an exponent");
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(text, "{mantissa}e{sign}{:02}", exponent.abs())
            .expect("writing into a string never fails");
    } else {
        let plain = format!("{float}");
        text.push_str(&plain);
        if !plain.contains('.') {
            text.push_str(".0");
        }
    }
}

#[cfg(test)]
mod tests;
