//! States in forms that are smaller than Kopf's: compressed, or as digests.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec_with_limit};
use serde_json::{Value, json};

use crate::{
    json,
    object::{diff::Baseline, essence::Essence, hashed::HashedState},
};

/// The depth to which fields are digested one by one; greater than that of any real object.
pub const FULL_DEPTH: usize = 64;

const LEVEL: u8 = 9;
const MAX_INFLATED: usize = 8 * 1024 * 1024;

/// Compresses a text into ASCII.
#[must_use]
pub fn deflate(text: &str) -> String {
    STANDARD.encode(compress_to_vec(text.as_bytes(), LEVEL))
}

/// Reads back what [`deflate`] made.
#[must_use]
pub fn inflate(packed: &str) -> Option<String> {
    let bytes = STANDARD.decode(packed).ok()?;
    let inflated = decompress_to_vec_with_limit(&bytes, MAX_INFLATED).ok()?;
    String::from_utf8(inflated).ok()
}

/// A state in the most detailed form that fits into `budget` bytes.
#[must_use]
pub fn pack(state: &Baseline, salt: &str, budget: usize) -> String {
    match state {
        Baseline::Absent => String::new(),
        Baseline::Hashed(hashed) => shallow(&hashed.to_json(), budget),
        Baseline::Known(essence) => {
            let packed = json!({"deflate": deflate(&json::to_ascii(essence.as_value()))});
            let text = json::to_ascii(&packed);
            if text.len() <= budget {
                text
            } else {
                digests(essence.as_value(), salt, budget).1
            }
        }
    }
}

/// Reads back what [`pack`] made.
#[must_use]
pub fn unpack(text: &str, salt: &str) -> Option<Baseline> {
    let json: Value = serde_json::from_str(text).ok()?;
    if let Some(packed) = json.get("deflate").and_then(Value::as_str) {
        let essence = serde_json::from_str(&inflate(packed)?).ok()?;
        return Some(Baseline::Known(Essence::from_value(essence)));
    }
    HashedState::from_json(json.get("digests")?, salt).map(Baseline::Hashed)
}

/// The most detailed digests that fit, and their text.
#[must_use]
pub fn digests(value: &Value, salt: &str, budget: usize) -> (HashedState, String) {
    let at = |depth| {
        let state = HashedState::new(value, salt, depth);
        let text = json::to_ascii(&json!({"digests": state.to_json()}));
        (state, text)
    };
    [FULL_DEPTH, 8, 6, 5, 4, 3, 2, 1]
        .into_iter()
        .map(at)
        .find(|(_, text)| text.len() <= budget)
        .unwrap_or_else(|| at(0))
}

/// Digests as they are if they fit; without the values they cannot be made less detailed.
fn shallow(tree: &Value, budget: usize) -> String {
    let text = json::to_ascii(&json!({ "digests": tree }));
    if text.len() <= budget {
        return text;
    }
    json::to_ascii(&json!({"digests": UNREADABLE}))
}

/// A text that is no digest of any value.
const UNREADABLE: &str = "-";

/// A last handled state of which no content is known.
#[must_use]
pub fn unreadable() -> Baseline {
    HashedState::from_json(&UNREADABLE.into(), "").map_or(Baseline::Absent, Baseline::Hashed)
}

#[cfg(test)]
mod tests;
