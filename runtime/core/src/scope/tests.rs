//! Patterns: examples and properties.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::matching::MatchingNamespaces;
use super::*;

fn matches(pattern: &str, name: &str) -> bool {
    NamespacePattern::new(pattern).matches(name)
}

/// Kopf's own algorithm.
fn as_kopf(pattern: &str, name: &str) -> bool {
    let mut globs: Vec<&str> = pattern.split(',').map(str::trim).collect();
    if globs[0].starts_with('!') {
        globs.insert(0, "*");
    }
    let first = Glob::new(globs[0]).matches(name);
    let mut matched = first;
    for glob in &globs[1..] {
        if glob.starts_with('!') {
            matched = matched && !Glob::new(glob.trim_start_matches('!')).matches(name);
        } else {
            matched = matched || (first && Glob::new(glob).matches(name));
        }
    }
    matched
}

#[test]
fn the_first_glob_decides_and_of_the_others_the_rightmost_wins() {
    let pattern = "myapp-*, !*-pr-*, *-pr-123";
    for (name, expected) in [
        ("myapp-live", true),
        ("myapp-pr-456", false),
        ("myapp-pr-123", true),
        ("otherapp-live", false),
        ("otherapp-pr-123", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{name}");
    }
}

#[test]
fn a_leading_negation_excludes_from_everything() {
    let pattern = "!*-pr-*,*-pr-123";
    for (name, expected) in [
        ("anything", true),
        ("otherapp-pr-123", true),
        ("myapp-pr-456", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{name}");
    }
}

#[test]
fn globs_are_those_of_fnmatch() {
    for (glob, name, expected) in [
        ("", "", true),
        ("", "a", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*a*b", "xaxbxb", true),
        ("*a*b", "xaxbx", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[]]", "]", true),
        ("[!]]", "]", false),
        ("[a", "[a", true),
        ("[a-]", "-", true),
        ("[-a]", "-", true),
        ("[c-a]", "b", false),
        ("[a-c-e]", "d", false),
        ("[a-c-e]", "e", true),
    ] {
        assert_eq!(Glob::new(glob).matches(name), expected, "{glob:?} {name:?}");
    }
}

#[test]
fn a_plain_name_is_a_literal() {
    assert_eq!(NamespacePattern::new("default").literal(), Some("default"));
    for pattern in ["a*", "a?", "[ab]", "!a", "a,b"] {
        assert_eq!(NamespacePattern::new(pattern).literal(), None, "{pattern}");
    }
}

/// The answers are those of Python's `re.fullmatch`, which Kopf calls.
#[test]
fn a_regular_expression_matches_the_whole_name() {
    for (expression, name, expected) in [
        ("myapp-(dev|test)", "myapp-dev", true),
        ("myapp-(dev|test)", "myapp-dev-2", false),
        ("myapp-(dev|test)", "my-myapp-dev", false),
        ("dev|test", "dev", true),
        ("dev|test", "developer", false),
        ("a|ab", "ab", true),
        (r"team-\d+", "team-12", true),
        (r"team-\d+", "team-", false),
        ("", "a", false),
        ("(?i)DEV", "dev", true),
    ] {
        let pattern = NamespacePattern::regex(expression).unwrap();
        assert_eq!(pattern.matches(name), expected, "{expression} {name}");
        assert_eq!((pattern.literal(), pattern.problem()), (None, None));
        assert_eq!(pattern.to_string(), expression);
    }
    for invalid in ["(", "a)|(b", "[z-a]"] {
        assert!(NamespacePattern::regex(invalid).is_err(), "{invalid}");
    }
    let globs = NamespacePattern::new("dev");
    assert_ne!(NamespacePattern::regex("dev").unwrap(), globs);
}

#[test]
fn the_problem_of_a_mistaken_pattern_is_reported() {
    let problem = |pattern| NamespacePattern::new(pattern).problem();
    assert_eq!(problem(""), Some(PatternProblem::Empty));
    assert_eq!(problem("a,"), Some(PatternProblem::Empty));
    assert_eq!(
        problem("Prod"),
        Some(PatternProblem::Impossible { character: 'P' })
    );
    let unreachable = PatternProblem::Unreachable {
        part: "b".to_owned(),
        first: "a".to_owned(),
    };
    assert_eq!(problem("a,b"), Some(unreachable));
    for pattern in ["a", "a-*,!a-b", "!a", "*,!b,b", "a,!b"] {
        assert_eq!(problem(pattern), None, "{pattern}");
    }
}

#[test]
fn a_new_namespace_of_the_same_name_stays() {
    let mut namespaces = MatchingNamespaces::new(vec!["a*".into(), "b".into()]);
    assert!(namespaces.add("a1", "first"));
    assert!(!namespaces.add("c", "other"));
    assert!(!namespaces.add("a1", "second"));
    assert!(!namespaces.remove("a1", "first"));
    assert_eq!(namespaces.names(), BTreeSet::from(["a1".to_owned()]));
    assert!(namespaces.remove("a1", "second"));
    assert_eq!(namespaces.literals(), BTreeSet::from(["b".to_owned()]));
    let globs: Vec<String> = namespaces.globs().map(ToString::to_string).collect();
    assert_eq!(globs, ["a*"]);
}

fn pattern() -> impl Strategy<Value = String> {
    "[!]{0,1}[ab*?]{0,3}(,[ ]{0,1}[!]{0,2}[ab*?]{0,3}){0,3}"
}

proptest! {
    #[test]
    fn patterns_match_as_in_kopf(pattern in pattern(), name in "[ab]{0,4}") {
        prop_assert_eq!(matches(&pattern, &name), as_kopf(&pattern, &name));
    }

    #[test]
    fn only_what_the_first_glob_matches_is_served(
        first in "[ab*?]{1,3}", rest in pattern(), name in "[ab]{0,4}",
    ) {
        if matches(&format!("{first},{rest}"), &name) {
            prop_assert!(matches(&first, &name));
        }
    }

    #[test]
    fn a_last_negation_always_excludes(pattern in pattern(), last in "[ab*?]{1,3}", name in "[ab]{0,4}") {
        if Glob::new(&last).matches(&name) {
            let negated = format!("{pattern},!{last}");
            prop_assert!(!matches(&negated, &name));
        }
    }

    #[test]
    fn a_text_without_wildcards_matches_only_itself(text in "[a-z0-9-]{1,9}", name in "[a-z0-9-]{1,9}") {
        prop_assert!(matches(&text, &text));
        prop_assert_eq!(matches(&text, &name), text == name);
    }

    #[test]
    fn any_text_is_a_pattern(pattern in ".*", name in ".*") {
        let pattern = NamespacePattern::new(&pattern);
        let _ = (pattern.matches(&name), pattern.problem());
    }
}
