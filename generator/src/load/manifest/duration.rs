//! Durations in the manifest, such as `1h30m`.
//!
//! Parsed by hand, because the pattern in the JSON Schema must accept exactly the same texts.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::{Code, Diagnostic};
use crate::load::yaml::{Node, Value};

/// A duration: `30s`, `1h30m`, or a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestDuration(pub Duration);

/// The texts that [`parse`] accepts, for the JSON Schema.
const PATTERN: &str = r"^([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h|d))+$";

/// A hundred years; longer texts are cut to it.
const LONGEST_SECONDS: u32 = 100 * 365 * 24 * 60 * 60;

/// Reads `30s`, `1h30m`, `1.5d`.
fn parse(text: &str) -> Option<Duration> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        total += amount(number)? * seconds_in(unit)?;
        rest = after;
    }
    if text.is_empty() {
        None
    } else {
        from_seconds(total.min(f64::from(LONGEST_SECONDS)))
    }
}

/// Reads a number of seconds.
fn from_seconds(seconds: f64) -> Option<Duration> {
    if (0.0..=f64::from(LONGEST_SECONDS)).contains(&seconds) {
        Duration::try_from_secs_f64(seconds).ok()
    } else {
        None
    }
}

fn amount(number: &str) -> Option<f64> {
    let short = |part: &str| (1..=9).contains(&part.len());
    let well_formed = match number.split_once('.') {
        None => short(number),
        Some((whole, fraction)) => short(whole) && short(fraction) && !fraction.contains('.'),
    };
    if well_formed {
        number.parse().ok()
    } else {
        None
    }
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    })
}

impl JsonSchema for ManifestDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "number", "minimum": 0, "maximum": LONGEST_SECONDS},
            {"type": "string", "pattern": PATTERN},
        ]})
    }
}

impl ManifestReader<'_> {
    pub(super) fn duration(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<ManifestDuration>> {
        let node = fields.optional(key)?;
        self.duration_of(node, key)
    }

    pub(super) fn duration_of(
        &mut self,
        node: &Node,
        key: &str,
    ) -> Option<Spanned<ManifestDuration>> {
        let parsed = match &node.value {
            Value::String(text) => parse(text),
            #[expect(
                clippy::cast_precision_loss,
                reason = "the range check is far below the precision of f64"
            )]
            Value::Int(seconds) => from_seconds(*seconds as f64),
            Value::Float(seconds) => from_seconds(*seconds),
            _ => None,
        };
        if parsed.is_none() {
            self.push(
                Diagnostic::error(Code::ManifestValue, format!("`{key}` is not a duration"))
                    .at(self.source, node.span, "not a duration")
                    .help("write it as `30s`, `5m`, `1h30m`, or as a number of seconds"),
            );
        }
        parsed.map(|value| Spanned {
            value: ManifestDuration(value),
            span: node.span,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_durations_are_read() {
        for (text, seconds) in [
            ("30s", 30.0),
            ("1h30m", 5400.0),
            ("250ms", 0.25),
            ("1.5d", 129_600.0),
            ("0s", 0.0),
            ("999999999d", f64::from(LONGEST_SECONDS)),
        ] {
            assert_eq!(
                parse(text),
                Some(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        for bad in ["", "s", "5", "5 s", "-5s", "1.s", "1..5s", "5w", "1e3s"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
