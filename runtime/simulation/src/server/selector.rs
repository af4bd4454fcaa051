//! Label selectors and field selectors.

use serde_json::Value;

use super::object_view::{member, metadata, text_of};

/// The objects that a list or a watch selects.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectSelector {
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
}

/// A selector that the API server rejects, with its message.
#[derive(Debug)]
pub(crate) struct InvalidSelector(pub(crate) String);

#[derive(Debug, Clone)]
struct LabelTerm {
    key: String,
    condition: LabelCondition,
}

#[derive(Debug, Clone)]
enum LabelCondition {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
}

#[derive(Debug, Clone)]
struct FieldTerm {
    field: SelectableField,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, Copy)]
enum SelectableField {
    Name,
    Namespace,
}

// === impl ObjectSelector ===

impl ObjectSelector {
    pub(crate) fn parse(
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, InvalidSelector> {
        let labels = terms(labels.unwrap_or_default()).into_iter();
        let fields = fields.unwrap_or_default();
        let fields = unescaped_split(fields, ',').into_iter();
        Ok(Self {
            labels: labels
                .filter(|term| !term.trim().is_empty())
                .map(LabelTerm::parse)
                .collect::<Result<_, _>>()?,
            fields: fields
                .filter(|term| !term.is_empty())
                .map(|term| FieldTerm::parse(&term))
                .collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|term| term.matches(object))
            && self.fields.iter().all(|term| term.matches(object))
    }
}

// === impl LabelTerm ===

impl LabelTerm {
    fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let text = text.trim();
        let term = |key: &str, condition| {
            Ok(Self {
                key: key.trim().to_owned(),
                condition,
            })
        };
        if let Some(key) = text.strip_prefix('!') {
            return term(key, LabelCondition::Missing);
        }
        if let Some((key, value)) = text.split_once("!=") {
            return term(key, LabelCondition::NotIn(vec![value.trim().to_owned()]));
        }
        if let Some((key, value)) = text.split_once('=') {
            let value = value.strip_prefix('=').unwrap_or(value).trim();
            if value.contains('=') {
                let message = "unable to parse requirement: found '=', expected: identifier";
                return Err(InvalidSelector(message.to_owned()));
            }
            return term(key, LabelCondition::In(vec![value.to_owned()]));
        }
        if let Some((key, values)) = text.split_once(" notin ") {
            return term(key, LabelCondition::NotIn(read_set(values)?));
        }
        if let Some((key, values)) = text.split_once(" in ") {
            return term(key, LabelCondition::In(read_set(values)?));
        }
        if text.contains(char::is_whitespace) {
            let message = format!("unable to parse requirement: {text}");
            return Err(InvalidSelector(message));
        }
        term(text, LabelCondition::Exists)
    }

    fn matches(&self, object: &Value) -> bool {
        let labels = metadata(object).and_then(|it| member(it, "labels")?.as_object());
        let value = labels.and_then(|it| member(it, &self.key)?.as_str());
        match &self.condition {
            LabelCondition::In(values) => value.is_some_and(|it| values.iter().any(|v| v == it)),
            LabelCondition::NotIn(values) => value.is_none_or(|it| values.iter().all(|v| v != it)),
            LabelCondition::Exists => value.is_some(),
            LabelCondition::Missing => value.is_none(),
        }
    }
}

// === impl FieldTerm ===

impl FieldTerm {
    fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let (field, value, equal) = if let Some((field, value)) = text.split_once("!=") {
            (field, value, false)
        } else if let Some((field, value)) = text.split_once('=') {
            (field, value.strip_prefix('=').unwrap_or(value), true)
        } else {
            let message = format!("invalid selector: '{text}'; can't understand '{text}'");
            return Err(InvalidSelector(message));
        };
        let field = match field {
            "metadata.name" => SelectableField::Name,
            "metadata.namespace" => SelectableField::Namespace,
            other => {
                let message = format!("field label not supported: {other}");
                return Err(InvalidSelector(message));
            }
        };
        Ok(Self {
            field,
            value: value.replace('\\', ""),
            equal,
        })
    }

    fn matches(&self, object: &Value) -> bool {
        let value = match self.field {
            SelectableField::Name => text_of(object, "name"),
            SelectableField::Namespace => text_of(object, "namespace"),
        };
        (value == self.value) == self.equal
    }
}

/// The terms of a label selector: commas inside parentheses do not separate them.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

fn read_set(text: &str) -> Result<Vec<String>, InvalidSelector> {
    let inner = text
        .trim()
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'));
    let inner = inner.ok_or_else(|| {
        InvalidSelector(format!(
            "unable to parse requirement: found '{text}' expected: '('"
        ))
    })?;
    Ok(inner.split(',').map(|it| it.trim().to_owned()).collect())
}

fn unescaped_split(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for character in text.chars() {
        if character == separator && !escaped {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(character);
        }
        escaped = character == '\\' && !escaped;
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_select_by_value_set_and_presence() {
        let object = json!({"metadata": {"name": "a", "labels": {"tier": "db", "x": ""}}});
        for (selector, expected) in [
            ("tier=db", true),
            ("tier==db,x", true),
            ("tier!=db", false),
            ("other!=db", true),
            ("tier in (web, db)", true),
            ("tier notin (web,db),x", false),
            ("other notin (web)", true),
            ("!other", true),
            ("!x", false),
            ("", true),
        ] {
            let parsed = ObjectSelector::parse(Some(selector), None).expect("it is valid");
            assert_eq!(parsed.matches(&object), expected, "{selector}");
        }
        let field = ObjectSelector::parse(None, Some("metadata.name=a,metadata.namespace!=b"));
        assert!(field.expect("it is valid").matches(&object));
        assert!(ObjectSelector::parse(None, Some("spec.size=1")).is_err());
    }
}
