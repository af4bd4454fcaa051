//! The name of a cluster.

use std::fmt;
use std::str::FromStr;

/// A name that is valid as a folder and as a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterName(String);

/// The text cannot be the name of a cluster.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be the name of a cluster: up to 40 lower-case letters, digits and dashes, with a letter first"
)]
pub struct InvalidClusterName(String);

/// Leaves room in paths and in names of Kubernetes.
const LONGEST: usize = 40;

// === impl ClusterName ===

impl ClusterName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ClusterName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl FromStr for ClusterName {
    type Err = InvalidClusterName;

    fn from_str(text: &str) -> Result<Self, InvalidClusterName> {
        let is_valid = text.len() <= LONGEST
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && !text.ends_with('-')
            && text
                .chars()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-');
        if is_valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidClusterName(text.to_owned()))
        }
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_dns_labels_are_refused() {
        for valid in ["default", "a", "team-7"] {
            assert_eq!(valid.parse::<ClusterName>().expect("valid").as_str(), valid);
        }
        let long = "a".repeat(LONGEST + 1);
        for invalid in ["", "-a", "a-", "7up", "Team", "a/b", "..", "ä", &long] {
            assert!(invalid.parse::<ClusterName>().is_err(), "{invalid}");
        }
    }
}
