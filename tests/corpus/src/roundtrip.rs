//! Decodes and encodes objects with the generated types, and compares the result with the original.

mod counts;
mod locate;
mod program;

use std::io;

use serde_json::Value;

use crate::corpus::{Corpus, DefinitionFile, SampleForm};
use crate::defaulting;
use crate::definition::DefinitionVersion;
use crate::difference::{self, Difference};
use crate::synthesis;

pub use counts::RoundtripCounts;
pub use program::{DecodeError, RoundtripProcess, RoundtripProgram};

/// One version of a definition, its types, and the objects to decode and encode.
#[derive(Clone, Debug)]
pub struct RoundtripCase {
    /// The file of the definition, without its extension.
    pub stem: String,
    /// The version.
    pub version: DefinitionVersion,
    /// The path of the type of the whole object, within the crate of the modules.
    pub path: String,
    /// The objects.
    pub objects: Vec<TestObject>,
}

/// An object and its origin.
#[derive(Clone, Debug)]
pub struct TestObject {
    /// `served`, `applied`, or a filling and its turn.
    pub origin: ObjectOrigin,
    /// The object.
    pub object: Value,
}

/// The origin of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectOrigin {
    /// A sample.
    Sample(SampleForm),
    /// A synthetic object.
    Synthetic(synthesis::Filling, usize),
}

/// The result for one object.
#[derive(Clone, Debug)]
pub struct ObjectResult {
    /// The origin of the object.
    pub origin: ObjectOrigin,
    /// The result.
    pub result: RoundtripResult,
}

/// The result of decoding and encoding an object.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundtripResult {
    /// After the API server's defaulting it is equal to the original; an optional member without a
    /// default may be `null` or absent.
    Identical,
    /// Only `null` became absent.
    NullDropped(Difference),
    /// Other values differ.
    Lossy(Vec<Difference>),
    /// It could not be decoded.
    Refused {
        /// The path up to which it was decoded.
        path: String,
        /// The decoder's message.
        message: String,
    },
}

/// The objects for a version: its samples, and those made from its schema.
///
/// # Errors
/// If a sample cannot be read.
pub fn objects(
    corpus: &Corpus,
    file: &DefinitionFile,
    version: &DefinitionVersion,
) -> io::Result<Vec<TestObject>> {
    let mut objects: Vec<TestObject> = corpus
        .samples(file)?
        .into_iter()
        .filter(|sample| sample.object["apiVersion"] == version.api_version().as_str())
        .map(|sample| TestObject {
            origin: ObjectOrigin::Sample(sample.form),
            object: sample.object,
        })
        .collect();
    objects.extend(
        synthesis::objects(version)
            .into_iter()
            .map(|synthetic| TestObject {
                origin: ObjectOrigin::Synthetic(synthetic.filling, synthetic.turn),
                object: synthetic.object,
            }),
    );
    Ok(objects)
}

/// Compares an object with the encoded one.
#[must_use]
pub fn compare(
    version: &DefinitionVersion,
    before: &Value,
    encoded: &Result<Value, DecodeError>,
) -> RoundtripResult {
    let after = match encoded {
        Ok(after) => after,
        Err(error) => {
            return RoundtripResult::Refused {
                path: locate::path_at(&before.to_string(), error.column),
                message: error.message.clone(),
            };
        }
    };
    let (mut before, mut after) = (before.clone(), after.clone());
    drop_null_metadata(&mut before);
    for object in [&mut before, &mut after] {
        defaulting::fill(&version.schema, object);
        defaulting::drop_nulls(&version.schema, object);
    }
    let mut differences = difference::between(&before, &after);
    if differences.is_empty() {
        RoundtripResult::Identical
    } else if differences.iter().all(Difference::is_dropped_null) {
        differences
            .pop()
            .map_or(RoundtripResult::Identical, RoundtripResult::NullDropped)
    } else {
        differences.retain(|difference| !difference.is_dropped_null());
        RoundtripResult::Lossy(differences)
    }
}

/// Drops `null` members of the metadata, as the API server does.
fn drop_null_metadata(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.retain(|_, value| !value.is_null());
    }
}

// === impl ObjectOrigin ===

impl std::fmt::Display for ObjectOrigin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sample(SampleForm::Applied) => formatter.write_str("applied"),
            Self::Sample(SampleForm::Served) => formatter.write_str("served"),
            Self::Synthetic(filling, turn) => write!(formatter, "{filling} {turn}"),
        }
    }
}

// === impl RoundtripResult ===

impl RoundtripResult {
    /// Whether the object is unchanged.
    #[must_use]
    pub const fn is_identical(&self) -> bool {
        matches!(self, Self::Identical)
    }

    /// The severity; identical is 0.
    #[must_use]
    pub const fn rank(&self) -> usize {
        match self {
            Self::Identical => 0,
            Self::NullDropped(_) => 1,
            Self::Lossy(_) => 2,
            Self::Refused { .. } => 3,
        }
    }
}

impl std::fmt::Display for RoundtripResult {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Identical => formatter.write_str("identical"),
            Self::NullDropped(difference) => write!(formatter, "null dropped: {difference}"),
            Self::Lossy(differences) => {
                formatter.write_str("lossy:")?;
                differences
                    .iter()
                    .take(3)
                    .try_for_each(|one| write!(formatter, " {one};"))
            }
            Self::Refused { path, message } => write!(formatter, "refused at {path}: {message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition;

    fn version() -> DefinitionVersion {
        definition::versions(&json!({"spec": {"versions": [{"name": "v1", "schema": {
            "openAPIV3Schema": {"properties": {
                "a": {"type": "integer", "default": 5},
                "n": {"nullable": true, "x-kubernetes-preserve-unknown-fields": true},
                "o": {"type": "string", "nullable": true},
            }},
        }}]}}))
        .remove(0)
    }

    #[test]
    fn an_optional_null_without_a_default_is_the_same_as_no_member() {
        let encoded = Ok(json!({"a": 1, "n": null}));
        assert_eq!(
            compare(&version(), &json!({"a": 1, "n": null, "o": null}), &encoded),
            RoundtripResult::Identical
        );
    }

    #[test]
    fn a_default_makes_no_difference() {
        assert_eq!(
            compare(&version(), &json!({}), &Ok(json!({"a": 5}))),
            RoundtripResult::Identical
        );
    }

    #[test]
    fn a_dropped_null_is_not_a_loss() {
        let before = json!({"a": 1, "n": null});
        assert!(matches!(
            compare(&version(), &before, &Ok(json!({"a": 1}))),
            RoundtripResult::NullDropped(_)
        ));
        assert!(matches!(
            compare(&version(), &before, &Ok(json!({"n": null}))),
            RoundtripResult::Lossy(_)
        ));
    }

    #[test]
    fn a_decode_error_names_the_path() {
        let error = DecodeError {
            message: "invalid type".to_owned(),
            column: 12,
        };
        let result = compare(&version(), &json!({"a": 1, "n": 7}), &Err(error));
        assert_eq!(result.to_string(), "refused at .n: invalid type");
    }
}
