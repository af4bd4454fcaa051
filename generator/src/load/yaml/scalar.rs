//! Converts plain YAML scalars to values.

use super::node::{Dialect, Value};

/// The value of a scalar without quotes and without a tag.
pub(super) fn plain(text: &str, dialect: Dialect) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if dialect == Dialect::Kubernetes
        && let Some(value) = yaml_1_1_bool(text)
    {
        return Value::Bool(value);
    }
    number(text, dialect).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The words that are booleans in YAML 1.1 only.
pub(super) fn yaml_1_1_bool(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn number(text: &str, dialect: Dialect) -> Option<Value> {
    let first = text.bytes().next()?;
    if !matches!(first, b'0'..=b'9' | b'-' | b'+' | b'.') {
        return None;
    }
    integer(text, dialect)
        .map(Value::Int)
        .or_else(|| float(text).map(Value::Float))
}

fn integer(text: &str, dialect: Dialect) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = if let Some(hex) = digits.strip_prefix("0x") {
        (16, hex)
    } else if let Some(octal) = digits.strip_prefix("0o") {
        (8, octal)
    } else if dialect == Dialect::Kubernetes && digits.len() > 1 && digits.starts_with('0') {
        (8, &digits[1..])
    } else {
        (10, digits)
    };
    // `from_str_radix` would accept a second sign.
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    i128::from_str_radix(digits, radix)
        .ok()
        .map(|value| sign * value)
}

fn float(text: &str) -> Option<f64> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let looks_like_one = body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && body.bytes().any(|byte| byte.is_ascii_digit())
        && body
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !looks_like_one {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}
