//! Expressions for texts and JSON values of any content.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use serde_json::{Number, Value};
use syn::{Expr, parse_quote};

/// The most values in one `json!`, whose expansion is recursive and limited by the compiler.
const MOST_VALUES: usize = 24;

/// A literal of a JSON text, raw so that it stays readable, with as many hashes as it needs.
pub(super) fn raw_json(text: &str) -> String {
    let text: String = text.chars().map(escaped_in_json).collect();
    let mut hashes = "#".to_owned();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("r{hashes}\"{text}\"{hashes}")
}

/// Whether the text of a JSON value is also its text inside of `json!`: nothing in it is escaped,
/// and it is small enough for the expansion.
pub(super) fn is_plain(value: &Value) -> bool {
    size(value) <= MOST_VALUES && has_plain_texts(value)
}

fn has_plain_texts(value: &Value) -> bool {
    let is_plain = |text: &str| text.escape_debug().eq(text.chars());
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
        Value::String(text) => is_plain(text),
        Value::Array(items) => items.iter().all(has_plain_texts),
        Value::Object(entries) => entries
            .iter()
            .all(|(key, value)| is_plain(key) && has_plain_texts(value)),
    }
}

/// A raw literal of a JSON text as an expression.
pub(super) fn json_text(text: &str) -> Expr {
    let literal: Literal = raw_json(text).parse().expect("it has enough hashes");
    parse_quote!(#literal)
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
pub(super) fn json(value: &Value) -> Expr {
    if size(value) > MOST_VALUES {
        let text = value.to_string();
        return parse_quote! {
            ::serde_json::from_str::<::serde_json::Value>(#text).expect("this is JSON")
        };
    }
    let value = inner(value);
    parse_quote!(::serde_json::json!(#value))
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(entries) => entries.values().map(size).sum(),
        _ => 0,
    }
}

/// A value inside of `json!`.
fn inner(value: &Value) -> TokenStream {
    match value {
        Value::Null => quote!(null),
        Value::Bool(value) => quote!(#value),
        Value::Number(number) => self::number(number),
        Value::String(text) => quote!(#text),
        Value::Array(items) => {
            let items = items.iter().map(inner);
            quote!([#(#items),*])
        }
        Value::Object(entries) => {
            let keys = entries.keys();
            let values = entries.values().map(inner);
            quote!({#(#keys: #values),*})
        }
    }
}

/// An integer, without the suffix of its type.
pub(super) fn integer(value: i64) -> Expr {
    let literal = Literal::u64_unsuffixed(value.unsigned_abs());
    if value < 0 {
        parse_quote!(-#literal)
    } else {
        parse_quote!(#literal)
    }
}

/// A floating-point number.
pub(super) fn float(value: f64) -> Expr {
    let literal: Literal = format!("{:?}", value.abs())
        .parse()
        .expect("JSON has finite numbers");
    if value.is_sign_negative() {
        parse_quote!(-#literal)
    } else {
        parse_quote!(#literal)
    }
}

/// A number; without a suffix, rustc takes an integer for an `i32`.
fn number(number: &Number) -> TokenStream {
    let (minus, literal) = match (number.as_i64(), number.as_u64()) {
        (Some(value), _) => {
            let is_small = i32::try_from(value).is_ok();
            let suffix = if is_small { "" } else { "i64" };
            (value < 0, format!("{}{suffix}", value.unsigned_abs()))
        }
        (None, Some(value)) => (false, format!("{value}u64")),
        (None, None) => {
            let value = number.as_f64().unwrap_or_default();
            (value.is_sign_negative(), format!("{:?}", value.abs()))
        }
    };
    let literal: Literal = literal.parse().expect("it is a number");
    if minus {
        quote!(-#literal)
    } else {
        quote!(#literal)
    }
}

#[cfg(test)]
mod tests {
    use quote::ToTokens as _;

    use super::*;

    #[test]
    fn raw_strings_end_where_they_should() {
        assert_eq!(raw_json("{}"), "r#\"{}\"#");
        assert_eq!(raw_json("\"#\"##"), "r###\"\"#\"##\"###");
        assert_eq!(raw_json("\"\u{202e}\""), "r#\"\"\\u202e\"\"#");
    }

    #[test]
    fn large_values_do_not_reach_the_recursion_limit() {
        let items: Value = (0..MOST_VALUES).collect();
        let text = json(&items).to_token_stream().to_string();
        assert!(text.contains("from_str"), "{text}");
    }
}
