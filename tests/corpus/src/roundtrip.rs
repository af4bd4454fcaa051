//! Objects through the generated types and back: what is identical, what is lost, what is refused.

mod locate;
mod program;
mod tally;

use std::io;

use serde_json::Value;

use crate::corpus::{Corpus, DefinitionFile, Origin};
use crate::defaulting;
use crate::definition::Version;
use crate::difference::{self, Difference};
use crate::synthesis;

pub use program::{Program, Refusal, Session};
pub use tally::Tally;

/// One version of a definition, its types, and the objects to send through them.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file of the definition, without its extension.
    pub stem: String,
    /// The version.
    pub version: Version,
    /// The path of the type of the whole object, within the crate of the modules.
    pub path: String,
    /// The objects.
    pub objects: Vec<Labelled>,
}

/// An object and where it came from.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// `served`, `applied`, or a filling and its turn.
    pub label: Label,
    /// The object.
    pub object: Value,
}

/// Where an object came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// A sample.
    Sample(Origin),
    /// A synthetic object.
    Synthetic(synthesis::Filling, usize),
}

/// What became of one object.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Where the object came from.
    pub label: Label,
    /// What became of it.
    pub fate: Fate,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// After the server's defaulting it is equal to what it was.
    Identical,
    /// Only `null` became absent.
    NullDropped(Difference),
    /// Something else differs.
    Lossy(Vec<Difference>),
    /// It could not be decoded.
    Refused {
        /// The path up to which it was decoded.
        path: String,
        /// Why not further.
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
    version: &Version,
) -> io::Result<Vec<Labelled>> {
    let mut objects: Vec<Labelled> = corpus
        .samples(file)?
        .into_iter()
        .filter(|sample| sample.object["apiVersion"] == version.api_version().as_str())
        .map(|sample| Labelled {
            label: Label::Sample(sample.origin),
            object: sample.object,
        })
        .collect();
    objects.extend(
        synthesis::objects(version)
            .into_iter()
            .map(|synthetic| Labelled {
                label: Label::Synthetic(synthetic.filling, synthetic.turn),
                object: synthetic.object,
            }),
    );
    Ok(objects)
}

/// Compares an object with what the types made of it.
#[must_use]
pub fn compare(version: &Version, before: &Value, answer: &Result<Value, Refusal>) -> Fate {
    let after = match answer {
        Ok(after) => after,
        Err(refusal) => {
            return Fate::Refused {
                path: locate::path_at(&before.to_string(), refusal.column),
                message: refusal.message.clone(),
            };
        }
    };
    let (mut before, mut after) = (before.clone(), after.clone());
    drop_null_metadata(&mut before);
    defaulting::fill(&version.schema, &mut before);
    defaulting::fill(&version.schema, &mut after);
    let mut differences = difference::between(&before, &after);
    if differences.is_empty() {
        Fate::Identical
    } else if differences.iter().all(Difference::is_dropped_null) {
        differences.pop().map_or(Fate::Identical, Fate::NullDropped)
    } else {
        differences.retain(|difference| !difference.is_dropped_null());
        Fate::Lossy(differences)
    }
}

/// Drops what is `null` in the metadata, as the server does with the metadata of every object.
fn drop_null_metadata(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.retain(|_, value| !value.is_null());
    }
}

// === impl Label ===

impl std::fmt::Display for Label {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sample(Origin::Applied) => formatter.write_str("applied"),
            Self::Sample(Origin::Served) => formatter.write_str("served"),
            Self::Synthetic(filling, turn) => write!(formatter, "{filling} {turn}"),
        }
    }
}

// === impl Fate ===

impl Fate {
    /// Whether the object came back as it was.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        matches!(self, Self::Identical)
    }

    /// How bad it is, best first.
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

impl std::fmt::Display for Fate {
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

    fn version() -> Version {
        definition::versions(&json!({"spec": {"versions": [{"name": "v1", "schema": {
            "openAPIV3Schema": {"properties": {
                "a": {"type": "integer", "default": 5},
                "n": {"type": "string", "nullable": true},
            }},
        }}]}}))
        .remove(0)
    }

    #[test]
    fn a_default_makes_no_difference() {
        assert_eq!(
            compare(&version(), &json!({}), &Ok(json!({"a": 5}))),
            Fate::Identical
        );
    }

    #[test]
    fn a_dropped_null_is_told_apart_from_a_loss() {
        let before = json!({"a": 1, "n": null});
        assert!(matches!(
            compare(&version(), &before, &Ok(json!({"a": 1}))),
            Fate::NullDropped(_)
        ));
        assert!(matches!(
            compare(&version(), &before, &Ok(json!({"n": null}))),
            Fate::Lossy(_)
        ));
    }

    #[test]
    fn a_refusal_names_the_path() {
        let refusal = Refusal {
            message: "invalid type".to_owned(),
            column: 12,
        };
        let fate = compare(&version(), &json!({"a": 1, "n": 7}), &Err(refusal));
        assert_eq!(fate.to_string(), "refused at .n: invalid type");
    }
}
