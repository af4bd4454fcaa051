//! Resource versions, and the order between them.

use std::fmt;

/// A version that no object has: the API server refuses an application with it if the object exists,
/// and makes the object if it does not.
pub const OF_NO_OBJECT: &str = "9223372036854775807";

/// A resource version; numbers are ordered, anything else is only equal to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceVersion {
    /// As etcd makes them.
    Number(u64),
    /// Anything else.
    Opaque(Box<str>),
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Opaque(text) => f.write_str(text),
        }
    }
}

impl ResourceVersion {
    /// Reads a version.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) => Self::Opaque(text.into()),
        }
    }

    /// Whether this version is not newer than the other.
    #[must_use]
    pub fn is_not_newer_than(&self, written: &Self) -> bool {
        match (self, written) {
            (Self::Number(seen), Self::Number(written)) => seen <= written,
            (seen, written) => seen == written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_are_known_and_newer_ones_are_not() {
        let written = ResourceVersion::new("99");
        assert!(ResourceVersion::new("98").is_not_newer_than(&written));
        assert!(ResourceVersion::new("99").is_not_newer_than(&written));
        assert!(!ResourceVersion::new("100").is_not_newer_than(&written));
    }

    #[test]
    fn versions_that_cannot_be_ordered_are_compared_for_equality() {
        let written = ResourceVersion::new("a");
        assert!(ResourceVersion::new("a").is_not_newer_than(&written));
        assert!(!ResourceVersion::new("b").is_not_newer_than(&written));
        assert!(!ResourceVersion::new("1").is_not_newer_than(&written));
    }
}
