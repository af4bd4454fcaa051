//! Regular expressions of schemas: matches texts, and makes examples that match.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The most repetitions beyond the required ones to try for every repeated part.
const MOST_REPETITIONS: u32 = 64;

/// No example grows much longer than this, whatever repeats inside of what.
const MOST_CHARACTERS: usize = 300;

thread_local! {
    static COMPILED: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
}

/// Whether a string matches; none if this engine cannot read the pattern.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> Option<bool> {
    COMPILED.with_borrow_mut(|compiled| {
        if !compiled.contains_key(pattern) {
            compiled.insert(pattern.to_owned(), Regex::new(pattern).ok());
        }
        let regex = compiled.get(pattern)?.as_ref()?;
        Some(regex.is_match(text))
    })
}

/// Strings made to match a pattern, short ones first; `salt` chooses among alternatives.
pub fn examples(pattern: &str, salt: usize) -> impl Iterator<Item = String> {
    regex_syntax::parse(pattern)
        .ok()
        .into_iter()
        .flat_map(move |hir| {
            (0..MOST_REPETITIONS).flat_map(move |more| {
                let hir = hir.clone();
                (salt..salt + 6).map(move |pick| {
                    let mut writer = ExampleWriter {
                        text: String::new(),
                        more,
                        pick,
                    };
                    writer.write(&hir);
                    writer.text
                })
            })
        })
}

struct ExampleWriter {
    text: String,
    more: u32,
    pick: usize,
}

// === impl ExampleWriter ===

impl ExampleWriter {
    fn write(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                self.text.push_str(&String::from_utf8_lossy(&literal.0));
            }
            HirKind::Class(class) => self.text.extend(character(class, self.pick)),
            HirKind::Repetition(repetition) => {
                let times = repetition
                    .min
                    .saturating_add(self.more)
                    .min(repetition.max.unwrap_or(u32::MAX));
                for _ in 0..times {
                    if self.text.len() > MOST_CHARACTERS {
                        break;
                    }
                    self.write(&repetition.sub);
                }
            }
            HirKind::Capture(capture) => self.write(&capture.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.write(part)),
            HirKind::Alternation(branches) => {
                let branch = &branches[self.pick % branches.len()];
                self.write(branch);
            }
        }
    }
}

/// One of the characters of a class: letters and digits if it has any.
fn character(class: &Class, pick: usize) -> Option<char> {
    let holds = |candidate: char| match class {
        Class::Unicode(class) => class
            .ranges()
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&candidate)),
        Class::Bytes(class) => u8::try_from(candidate).is_ok_and(|byte| {
            class
                .ranges()
                .iter()
                .any(|range| (range.start()..=range.end()).contains(&byte))
        }),
    };
    let plain: Vec<char> = ('a'..='z')
        .chain('0'..='9')
        .chain('A'..='Z')
        .filter(|candidate| holds(*candidate))
        .collect();
    if let Some(count) = plain.len().checked_sub(1) {
        return plain.get(pick % (count + 1)).copied();
    }
    match class {
        Class::Unicode(class) => class.ranges().first().map(|range| range.start()),
        Class::Bytes(class) => class
            .ranges()
            .first()
            .map(|range| char::from(range.start())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_match_their_pattern() {
        for pattern in [
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            "^(http|https)://[^/]+/.{3,}$",
            "^([0-9]{1,3}\\.){3}[0-9]{1,3}$",
            "^arn:aws[a-z-]*:iam::\\d{12}:role/.+",
            "^\\S+$",
        ] {
            let matching = examples(pattern, 3)
                .filter(|text| matches(pattern, text) == Some(true))
                .count();
            assert!(matching > 3, "{pattern} has {matching} examples");
        }
    }

    #[test]
    fn other_salts_choose_other_characters() {
        let first = examples("^[a-z]{3}$", 0).next();
        let second = examples("^[a-z]{3}$", 1).next();
        assert_ne!(first, second);
    }

    #[test]
    fn an_unsupported_pattern_neither_matches_nor_fails() {
        assert_eq!(matches("(?=x)", "x"), None);
        assert_eq!(examples("(?=x)", 0).count(), 0);
    }
}
