//! Describes the validations of a schema in sentences for doc comments.

use serde_json::Value as Json;

use crate::load::schema::Schema;

/// The characteristic part of the pattern that Kubernetes puts on quantities.
pub(super) const QUANTITY: &str = "(([KMGTPE]i)|[numkMGTPE]|";

/// Longer values are left out, because a pattern of many lines does not help readers.
const MAX_LENGTH: usize = 120;

/// The constraints on a value beyond its type, one sentence each.
pub(super) fn sentences(schema: &Schema) -> Vec<String> {
    let mut sentences = Vec::new();
    let bounds = bounds(schema);
    if !bounds.is_empty() {
        sentences.push(format!("Validation: {}.", bounds.join(", ")));
    }
    if let Some(format) = schema
        .format
        .as_deref()
        .filter(|format| adds_information(format))
    {
        sentences.push(format!("Format: {format}."));
    }
    for rule in &schema.limits.rules {
        let rule = rule.message.as_ref().unwrap_or(&rule.rule).trim();
        if !rule.is_empty() && rule.len() <= MAX_LENGTH && !rule.contains('\n') {
            sentences.push(format!(
                "Rule: {}",
                rule.trim_end_matches('.').to_owned() + "."
            ));
        }
    }
    match schema.limits.list_type.as_deref() {
        Some("map") => {
            let keys = schema.limits.list_map_keys.join("`, `");
            sentences.push(format!("Items are identified by `{keys}`."));
        }
        Some("set") => sentences.push("Items are all different.".to_owned()),
        _ => {}
    }
    sentences
}

fn bounds(schema: &Schema) -> Vec<String> {
    let is_set = |keyword: &str| schema.limit(keyword) == Some(&Json::Bool(true));
    schema
        .limits
        .keywords
        .iter()
        .filter_map(|(keyword, value)| {
            let value = match value {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
            if value.len() > MAX_LENGTH || value.contains(['`', '\n']) || value.contains(QUANTITY) {
                return None;
            }
            let phrase = match *keyword {
                "minimum" if is_set("exclusiveMinimum") => format!("more than {value}"),
                "minimum" => format!("at least {value}"),
                "maximum" if is_set("exclusiveMaximum") => format!("less than {value}"),
                "maximum" => format!("at most {value}"),
                "multipleOf" => format!("a multiple of {value}"),
                "minLength" => format!("at least {value} characters"),
                "maxLength" => format!("at most {value} characters"),
                "minItems" => format!("at least {value} items"),
                "maxItems" => format!("at most {value} items"),
                "minProperties" => format!("at least {value} entries"),
                "maxProperties" => format!("at most {value} entries"),
                "pattern" => format!("matches `{value}`"),
                _ => return None,
            };
            Some(phrase)
        })
        .collect()
}

/// Whether a format says more than the type.
fn adds_information(format: &str) -> bool {
    !matches!(
        format,
        "" | "string" | "byte" | "int-or-string" | "int32" | "int64" | "float" | "double" | "uint"
    ) && !format.starts_with("int")
        && !format.starts_with("uint")
}
