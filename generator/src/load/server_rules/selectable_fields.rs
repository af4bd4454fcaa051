//! The rules for the fields that field selectors may use.

use std::collections::BTreeSet;

use super::Rejections;
use super::keywords::{Additional, Keywords};

/// The most fields of one version.
const MOST_FIELDS: usize = 8;

pub(super) const SELECTABLE_FIELDS: &str = "selectableFields";
const JSON_PATH: &str = "jsonPath";

/// A value to which a path leads; its schema is missing if the schema around it allows any value.
#[derive(Clone, Copy)]
struct SelectedValue<'n>(Option<Keywords<'n>>);

/// Checks the selectable fields of a version with this root of its schema.
pub(super) fn check(version: Keywords<'_>, root: Keywords<'_>, found: &mut Rejections) {
    let mut paths = BTreeSet::new();
    for field in version.branches(SELECTABLE_FIELDS) {
        let path = field.text(JSON_PATH);
        if path.is_empty() {
            found.add(field.start(), "jsonPath: Required value");
            continue;
        }
        let place = field.at(JSON_PATH);
        let tokens = tokens(path);
        let value = match follow(&tokens, SelectedValue(Some(root))) {
            Ok(value) => value,
            Err(reason) => {
                found.add(place, format!("is an invalid path: {reason}"));
                continue;
            }
        };
        if tokens.get(1) == Some(&"metadata") {
            found.add(place, "must not point to fields in metadata");
        }
        let kind = value.0.map_or("", Keywords::kind);
        if !matches!(kind, "string" | "boolean" | "integer") {
            let reason = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            found.add(place, reason);
        }
        if !paths.insert(tokens) {
            found.add(place, "Duplicate value");
        }
    }
    if paths.len() > MOST_FIELDS {
        let reason = format!("must have at most {MOST_FIELDS} items");
        found.add(version.at(SELECTABLE_FIELDS), reason);
    }
}

/// The value at the end of a path.
fn follow<'n>(tokens: &[&str], root: SelectedValue<'n>) -> Result<SelectedValue<'n>, String> {
    let mut value = root;
    let mut tokens = tokens.iter();
    while let Some(token) = tokens.next() {
        match *token {
            "[" => return Err("array notation is not allowed".to_owned()),
            "." => {
                let name = tokens.next().ok_or("unexpected end of JSON path")?;
                value = value
                    .member(name)
                    .ok_or("does not refer to a valid field")?;
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(value)
}

/// The delimiters of a path, and the texts between them; a text in quotation marks is one token.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '.' | '[' | ']' => Some(1),
            '\'' => closing_quote(rest),
            _ => rest.find(['.', '[', ']']),
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// The end of the text in quotation marks at the start.
fn closing_quote(text: &str) -> Option<usize> {
    let mut previous = ' ';
    for (place, character) in text.char_indices() {
        if place > 0 && character == '\'' && previous != '\\' {
            return Some(place + 1);
        }
        previous = character;
    }
    None
}

// === impl SelectedValue ===

impl<'n> SelectedValue<'n> {
    fn member(self, name: &str) -> Option<Self> {
        let schema = self.0?;
        if !schema.properties().is_empty() {
            return schema.property(name).map(|it| Self(Some(it)));
        }
        schema.additional().map(|values| match values {
            Additional::Schema(values) => Self(Some(values)),
            Additional::Allowed(_) => Self(None),
        })
    }
}
