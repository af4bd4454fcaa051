//! Makes strings and numbers that a schema allows, several for each format.

use serde_json::Value;

use crate::schema::SchemaNode;
use crate::validation::in_bounds;
use crate::{format, pattern};

/// Words that patterns of the corpus often match; tried before words made from the pattern.
const FAMILIAR: &[&str] = &[
    "100m",
    "2Gi",
    "1h30m",
    "example",
    "example.com",
    "10.0.0.1",
    "10.0.0.0/16",
    "https://example.com/path",
    "example.com/name",
    "8080",
    "2024-02-29T12:34:56Z",
    "fd00::1",
    "v1",
];

/// A string that the schema allows; `salt` chooses among them.
pub(super) fn string(schema: &SchemaNode, salt: usize) -> Option<String> {
    let mut formatted = schema
        .format
        .as_deref()
        .map_or(&[][..], format::spellings)
        .to_vec();
    if !formatted.is_empty() {
        let turn = salt % formatted.len();
        formatted.rotate_left(turn);
    }
    let familiar = if schema.patterns.is_empty() {
        &[]
    } else {
        FAMILIAR
    };
    let own = schema
        .patterns
        .iter()
        .flat_map(|pattern| pattern::examples(pattern, salt));
    let plain = (formatted.is_empty() && schema.patterns.is_empty()).then(|| word(schema, salt));
    formatted
        .into_iter()
        .map(str::to_owned)
        .chain(plain)
        .chain(
            familiar
                .iter()
                .cycle()
                .skip(salt % FAMILIAR.len())
                .take(familiar.len())
                .map(|text| (*text).to_owned()),
        )
        .chain(own)
        .find(|text| allows(schema, text))
}

/// The shortest string that the schema allows.
pub(super) fn shortest(schema: &SchemaNode) -> Option<String> {
    let empty = schema
        .format
        .as_deref()
        .is_none_or(|format| format::spellings(format).is_empty());
    if empty && allows(schema, "") {
        return Some(String::new());
    }
    string(schema, 0)
}

fn allows(schema: &SchemaNode, text: &str) -> bool {
    schema
        .format
        .as_deref()
        .is_none_or(|format| format::holds(format, text))
        && schema.bounds.length.contains(text.chars().count() as u64)
        && schema
            .patterns
            .iter()
            .all(|pattern| pattern::matches(pattern, text).unwrap_or(true))
}

fn word(schema: &SchemaNode, salt: usize) -> String {
    let length = schema.bounds.length;
    let mut word = format!("v{salt}");
    if let Some(max) = length.max
        && word.len() as u64 > max
    {
        word = (b'a'..=b'z')
            .map(char::from)
            .cycle()
            .skip(salt)
            .take(usize::try_from(max).unwrap_or(1))
            .collect();
    }
    while (word.len() as u64) < length.min.unwrap_or(0) {
        word.push('x');
    }
    word
}

/// A whole number that the schema allows; `salt` chooses among them.
pub(super) fn integer(schema: &SchemaNode, salt: usize) -> Option<Value> {
    let (lowest, highest) = width(schema.format.as_deref());
    let candidates = [1, 0, highest, 7, 443, lowest.max(-1)].map(Value::from);
    // Beyond the precision of a double, the check of a multiple is not exact.
    let candidates = if schema.bounds.multiple_of.is_some() {
        &[][..]
    } else {
        &candidates[..]
    };
    choose_number(schema, candidates, salt).or_else(|| {
        edges(schema)
            .into_iter()
            .flat_map(|edge| {
                [
                    edge.ceil(),
                    edge.floor(),
                    edge.floor() + 1.0,
                    edge.ceil() - 1.0,
                ]
            })
            .find(|number| in_bounds(&schema.bounds, *number))
            .map(|number| {
                #[expect(clippy::cast_possible_truncation, reason = "it has no fraction")]
                Value::from(number as i64)
            })
    })
}

/// A number that the schema allows; `salt` chooses among them.
pub(super) fn number(schema: &SchemaNode, salt: usize) -> Option<Value> {
    let candidates = [
        Value::from(1.5),
        Value::from(2),
        Value::from(0.1),
        Value::from(40.25),
    ];
    choose_number(schema, &candidates, salt).or_else(|| {
        edges(schema)
            .into_iter()
            .flat_map(|edge| [edge, edge + 0.5, edge - 0.5])
            .find(|number| in_bounds(&schema.bounds, *number))
            .map(Value::from)
    })
}

fn choose_number(schema: &SchemaNode, candidates: &[Value], salt: usize) -> Option<Value> {
    let fitting: Vec<&Value> = candidates
        .iter()
        .filter(|value| {
            value
                .as_f64()
                .is_some_and(|number| in_bounds(&schema.bounds, number))
        })
        .collect();
    let turn = salt.checked_rem(fitting.len())?;
    fitting.get(turn).map(|value| (*value).clone())
}

/// Numbers near which an allowed one must lie.
fn edges(schema: &SchemaNode) -> Vec<f64> {
    let range = schema.bounds.number;
    let step = schema.bounds.multiple_of;
    let multiples = step.and_then(|step| range.min.map(|min| (min / step).ceil() * step));
    range
        .min
        .into_iter()
        .chain(range.max)
        .chain(multiples)
        .chain(step)
        .collect()
}

/// The lowest and highest number of a format; for none, one that a double cannot hold.
fn width(format: Option<&str>) -> (i64, i64) {
    match format {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint" | "uint64") => (0, 9_007_199_254_740_993),
        _ => (i64::MIN, 9_007_199_254_740_993),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn schema(json: &Value) -> SchemaNode {
        SchemaNode::from_json(json)
    }

    #[test]
    fn every_example_of_a_format_is_used() {
        let times: BTreeSet<_> = (0..4)
            .filter_map(|salt| string(&schema(&json!({"format": "date-time"})), salt))
            .collect();
        assert_eq!(times.len(), 4, "{times:?}");
    }

    #[test]
    fn a_string_satisfies_pattern_and_lengths_together() {
        let schema = schema(&json!({"pattern": "^[a-z]+$", "minLength": 20, "maxLength": 24}));
        let text = string(&schema, 0).expect("such a string exists");
        assert!((20..=24).contains(&text.len()), "{text}");
    }

    #[test]
    fn a_pattern_narrows_a_format() {
        let schema = schema(&json!({"format": "date-time", "pattern": "Z$"}));
        for salt in 0..4 {
            assert!(string(&schema, salt).is_some_and(|text| text.ends_with('Z')));
        }
    }

    #[test]
    fn quantities_have_several_spellings() {
        let schema = schema(&json!({"pattern": r"^[0-9]+(m|Mi|Gi)?$"}));
        let spellings: BTreeSet<_> = (0..13).filter_map(|salt| string(&schema, salt)).collect();
        assert!(
            spellings.contains("100m") && spellings.contains("2Gi"),
            "{spellings:?}"
        );
    }

    #[test]
    fn lengths_without_a_pattern_are_kept() {
        let schema = schema(&json!({"minLength": 2, "maxLength": 2}));
        assert_ne!(string(&schema, 11), string(&schema, 12));
        assert_eq!(string(&schema, 11).map(|text| text.len()), Some(2));
    }

    #[test]
    fn an_unsatisfiable_schema_has_no_string() {
        assert_eq!(
            string(&schema(&json!({"pattern": "^a$", "minLength": 2})), 0),
            None
        );
    }

    #[test]
    fn whole_numbers_use_the_width_of_their_format_within_the_bounds() {
        let values = |json: Value| -> BTreeSet<i64> {
            (0..6)
                .filter_map(|salt| integer(&schema(&json), salt)?.as_i64())
                .collect()
        };
        assert!(values(json!({"format": "int32"})).contains(&i64::from(i32::MAX)));
        assert!(values(json!({})).contains(&9_007_199_254_740_993));
        assert_eq!(
            values(json!({"minimum": 500, "maximum": 500})),
            BTreeSet::from([500])
        );
        assert_eq!(
            values(json!({"minimum": 10, "maximum": 20, "exclusiveMinimum": true})),
            BTreeSet::from([11])
        );
        assert_eq!(
            values(json!({"minimum": 1000, "multipleOf": 512})),
            BTreeSet::from([1024])
        );
    }

    #[test]
    fn a_number_may_be_whole() {
        assert_eq!(number(&schema(&json!({})), 1), Some(json!(2)));
        assert_eq!(
            number(&schema(&json!({"minimum": 5000.25})), 1),
            Some(json!(5000.25))
        );
    }
}
