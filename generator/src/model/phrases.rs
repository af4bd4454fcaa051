//! What texts call the objects of a kind.

use super::operator::HandledKind;

/// `a KopfExample`, `an Ingress`.
#[must_use]
pub fn article(noun: &str) -> &'static str {
    if noun.starts_with(['A', 'E', 'I', 'O', 'a', 'e', 'i', 'o']) {
        "an"
    } else {
        "a"
    }
}

/// One object of a kind or a selection: `a Pod`, ``an object of `Toys` ``.
#[must_use]
pub fn object(kind: &HandledKind) -> String {
    match kind.selector() {
        Some(_) => format!("an object of `{}`", kind.kind),
        None => format!("{} {}", article(&kind.type_name), kind.type_name),
    }
}

/// The objects of a kind or a selection: `Pod objects`, ``objects of `Toys` ``.
#[must_use]
pub fn objects(kind: &HandledKind) -> String {
    match kind.selector() {
        Some(_) => format!("objects of `{}`", kind.kind),
        None => format!("{} objects", kind.type_name),
    }
}
