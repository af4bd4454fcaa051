//! The names that the API server accepts, and its reasons for rejecting the others.

use std::fmt;

/// A rule by which the API server checks a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS-1035 label, such as a plural or a version.
    Label,
    /// A DNS-1035 label in any case, such as a kind.
    Kind,
    /// The group of custom resources: a DNS-1123 subdomain with a dot.
    CustomGroup,
    /// A DNS-1123 subdomain, such as a group or the name of an object.
    Subdomain,
    /// A DNS-1123 label, such as the name of a namespace.
    Namespace,
    /// The name of a label or an annotation, with or without a prefix.
    QualifiedName,
    /// The value of a label.
    LabelValue,
}

/// The reason for which the API server rejects a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// It is too long.
    #[error("must be no more than {0} characters")]
    TooLong(usize),
    /// It is not a label.
    #[error(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character"
    )]
    Label,
    /// It is not a label in any case.
    #[error(
        "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character"
    )]
    Kind,
    /// It is not a subdomain.
    #[error(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
    )]
    Subdomain,
    /// It is not the name of a namespace.
    #[error(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
    )]
    Namespace,
    /// A group has no dot.
    #[error("should be a domain with at least one dot")]
    WithoutDot,
    /// It is not the name of a label or an annotation.
    #[error(
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    )]
    QualifiedName,
    /// It is not the value of a label.
    #[error(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    )]
    LabelValue,
}

/// A name in a message: in backticks, in one line, and not longer than a line.
#[derive(Clone, Copy, Debug)]
pub struct QuotedName<'a>(pub &'a str);

/// The help of a diagnostic with the reason of the API server.
#[must_use]
pub fn server_reason(reason: &str) -> String {
    format!("the reason of the API server: {reason}")
}

/// The name in lower case as the API server writes it, character by character.
#[must_use]
pub fn lower_case(name: &str) -> String {
    // The only character with another lower case in Unicode's tables for single characters.
    name.replace('\u{130}', "i").to_lowercase()
}

/// The longest label.
const LABEL_LENGTH: usize = 63;

/// The longest subdomain.
const SUBDOMAIN_LENGTH: usize = 253;

/// The longest part of a name that a message quotes.
const QUOTED_LENGTH: usize = 80;

// === impl NameRule ===

impl NameRule {
    /// The reason for which the API server rejects a name; `None` if it accepts the name.
    #[must_use]
    pub fn problem(self, name: &str) -> Option<NameProblem> {
        match self {
            Self::Label => label(name, NameProblem::Label),
            Self::Kind => label(&lower_case(name), NameProblem::Kind),
            Self::CustomGroup => {
                let dot = (!name.contains('.')).then_some(NameProblem::WithoutDot);
                subdomain(name).or(dot)
            }
            Self::Subdomain => subdomain(name),
            Self::Namespace if name.len() > LABEL_LENGTH => {
                Some(NameProblem::TooLong(LABEL_LENGTH))
            }
            Self::Namespace => {
                let is_label = !name.contains('.') && subdomain(name).is_none();
                (!is_label).then_some(NameProblem::Namespace)
            }
            Self::QualifiedName => match name.split_once('/') {
                Some((prefix, name)) => subdomain(prefix).or_else(|| qualified(name)),
                None => qualified(name),
            },
            Self::LabelValue if name.is_empty() => None,
            Self::LabelValue => word(name, NameProblem::LabelValue),
        }
    }

    /// Whether the API server accepts a name.
    #[must_use]
    pub fn accepts(self, name: &str) -> bool {
        self.problem(name).is_none()
    }
}

fn label(name: &str, otherwise: NameProblem) -> Option<NameProblem> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(is_inner);
    if name.len() > LABEL_LENGTH {
        Some(NameProblem::TooLong(LABEL_LENGTH))
    } else {
        (!fits).then_some(otherwise)
    }
}

fn subdomain(name: &str) -> Option<NameProblem> {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_end)
            && part.ends_with(is_end)
            && part.chars().all(|c| is_end(c) || c == '-')
    };
    if name.len() > SUBDOMAIN_LENGTH {
        Some(NameProblem::TooLong(SUBDOMAIN_LENGTH))
    } else {
        (!name.split('.').all(is_part)).then_some(NameProblem::Subdomain)
    }
}

fn qualified(name: &str) -> Option<NameProblem> {
    word(name, NameProblem::QualifiedName)
}

/// A word of at most 63 letters, digits and `-_.`.
fn word(name: &str, otherwise: NameProblem) -> Option<NameProblem> {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let fits = name.starts_with(is_end)
        && name.ends_with(is_end)
        && name.chars().all(|c| is_end(c) || "-_.".contains(c));
    if name.len() > LABEL_LENGTH {
        Some(NameProblem::TooLong(LABEL_LENGTH))
    } else {
        (!fits).then_some(otherwise)
    }
}

// === impl QuotedName ===

impl fmt::Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped: String = self.0.escape_debug().take(QUOTED_LENGTH).collect();
        let is_cut = escaped.chars().count() == QUOTED_LENGTH;
        let rest = if is_cut { "…" } else { "" };
        // Quotation marks need no backslash between backticks.
        let escaped = escaped.replace("\\\"", "\"").replace("\\'", "'");
        write!(f, "`{escaped}{rest}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_as_by_the_api_server() {
        let long = "x".repeat(64);
        for (rule, good, bad) in [
            (
                NameRule::Label,
                vec!["widgets", "v1", "a-1"],
                vec!["", "1a", "a-", "A", "a.b", "a_b", &long],
            ),
            (
                NameRule::Kind,
                vec!["Widget", "postgresql", "My-Kind", "\u{130}tem"],
                vec!["", "1A", "A\"", "A\n", "A.B", "Ä", &long],
            ),
            (
                NameRule::CustomGroup,
                vec!["example.com", "3scale.net"],
                vec!["", "apps", "a..b", "A.b", "-a.b", "a.b\n"],
            ),
            (
                NameRule::Subdomain,
                vec!["apps", "a.b-c"],
                vec!["", ".", "a.", "a_b"],
            ),
            (
                NameRule::Namespace,
                vec!["a", "1a", "a-1"],
                vec!["", "-a", "a-", "a.b", "A", "a_b", &long],
            ),
            (
                NameRule::QualifiedName,
                vec!["a", "A_b.c", "example.com/a"],
                vec!["", "/a", "a/", "a/b/c", "a b", "E.com/a", &long],
            ),
            (
                NameRule::LabelValue,
                vec!["", "A_b.c"],
                vec!["a b", "-a", "ü", &long],
            ),
        ] {
            for name in good {
                assert_eq!(rule.problem(name), None, "{rule:?} {name:?}");
            }
            for name in bad {
                assert!(!rule.accepts(name), "{rule:?} {name:?}");
            }
        }
        assert!(NameRule::LabelValue.accepts(&"x".repeat(63)));
    }

    #[test]
    fn quoted_names_stay_in_one_short_line() {
        assert_eq!(
            QuotedName("a\"b\n\u{202e}'").to_string(),
            "`a\"b\\n\\u{202e}'`"
        );
        let long = QuotedName(&"x".repeat(9000)).to_string();
        assert!(long.chars().count() < 90 && long.ends_with("…`"), "{long}");
    }
}
