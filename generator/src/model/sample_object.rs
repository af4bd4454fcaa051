//! Makes a sample object with the required fields of a schema, which the API server probably
//! accepts.

use serde_json::{Map, Value, json};

use crate::load::schema::{Schema, SchemaLimits, SchemaType};

/// Fields that the sample leaves to the caller or to the API server.
const NOT_OURS: &[&str] = &["apiVersion", "kind", "metadata", "status"];

/// The most values in a sample; a schema can demand any number of them.
const MOST_VALUES: u64 = 1000;

/// The longest text in a sample.
const LONGEST_TEXT: u64 = 1024;

/// A sample object without `apiVersion`, `kind` and `metadata`; `None` if the schema demands a
/// large one.
#[must_use]
pub fn object(root: &Schema) -> Option<Value> {
    let mut left = MOST_VALUES;
    let mut body = Map::new();
    for property in &root.properties {
        let name = property.name.as_str();
        let wanted = name == "spec" || root.required.iter().any(|it| it == name);
        if wanted && !NOT_OURS.contains(&name) {
            body.insert(name.to_owned(), value(&property.schema, &mut left)?);
        }
    }
    Some(Value::Object(body))
}

/// A value of a schema; `left` is the number of values that may still be added.
fn value(schema: &Schema, left: &mut u64) -> Option<Value> {
    *left = left.checked_sub(1)?;
    if let Some(default) = &schema.default {
        return Some(default.clone());
    }
    let choices = schema.values.iter().flatten();
    if let Some(choice) = choices.into_iter().find(|choice| !choice.is_null()) {
        return Some(choice.clone());
    }
    Some(match schema.kind {
        Some(SchemaType::Array) => {
            let least = limit(&schema.limits, "minItems").unwrap_or(0);
            let item = |left: &mut u64| match schema.items.as_deref() {
                Some(items) => value(items, left),
                None => left.checked_sub(1).map(|rest| {
                    *left = rest;
                    Value::Null
                }),
            };
            (0..least).map(|_| item(left)).collect::<Option<_>>()?
        }
        Some(SchemaType::Boolean) => json!(true),
        Some(SchemaType::Integer | SchemaType::Number) => {
            let least = limit(&schema.limits, "minimum").unwrap_or(1);
            let most = limit(&schema.limits, "maximum").unwrap_or(u64::MAX);
            json!(least.max(1).min(most))
        }
        Some(SchemaType::String) => json!(text(schema)?),
        Some(SchemaType::Object) => {
            let required = |name: &str| schema.required.iter().any(|it| it == name);
            let properties = schema.properties.iter().filter(|it| required(&it.name));
            let properties = properties
                .map(|property| Some((property.name.clone(), value(&property.schema, left)?)));
            properties.collect::<Option<_>>()?
        }
        None if schema.int_or_string => json!(1),
        None => json!({}),
    })
}

fn text(schema: &Schema) -> Option<String> {
    let text = match schema.format.as_deref() {
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("duration") => "1h",
        Some("ipv4" | "ip") => "192.0.2.1",
        Some("uri") => "https://example.com/",
        _ => "example",
    };
    let least = limit(&schema.limits, "minLength").unwrap_or(0);
    let least = usize::try_from(least.min(LONGEST_TEXT + 1)).ok()?;
    let missing = least.saturating_sub(text.len());
    let is_short = missing as u64 <= LONGEST_TEXT;
    is_short.then(|| format!("{text}{}", "x".repeat(missing)))
}

fn limit(limits: &SchemaLimits, keyword: &str) -> Option<u64> {
    let found = limits.keywords.iter().find(|(name, _)| *name == keyword);
    found.and_then(|(_, value)| value.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Diagnostics, Sources};
    use crate::load::crd::{NameFix, read};

    #[test]
    fn the_sample_has_required_fields_only() {
        const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size, name, mode, at, list, deep]
            properties:
              size: {type: integer, minimum: 3}
              name: {type: string, minLength: 9}
              mode: {type: string, enum: [A, B]}
              at: {type: string, format: date-time}
              list: {type: array, minItems: 1, items: {type: string, default: x}}
              deep: {type: object, required: [lit], properties: {lit: {type: boolean}, dim: {type: string}}}
              optional: {type: string}
";
        let mut sources = Sources::new();
        let source = sources.add("widget.yaml", CRD);
        let mut diagnostics = Diagnostics::new();
        let crds = read(&sources, source, NameFix::Report, &mut diagnostics);
        assert_eq!(
            object(&crds[0].versions[0].schema),
            Some(json!({"spec": {
                "size": 3,
                "name": "examplexx",
                "mode": "A",
                "at": "2026-01-01T00:00:00Z",
                "list": ["x"],
                "deep": {"lit": true},
            }}))
        );
    }
}
