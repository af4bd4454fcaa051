//! Globs with `*`, `?` and `[…]`, as Python's `fnmatch` reads them.
//!
//! Hand-written, since glob crates have the rules of a shell: braces, escapes, `/` and a leading
//! dot have a meaning there, and an unclosed `[` is an error.

/// A parsed glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Letter(char),
    One,
    Many,
    Class(Class),
}

/// `[a-c_]` or `[!a-c_]`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Class {
    negated: bool,
    ranges: Vec<(char, char)>,
}

// === impl Glob ===

impl Glob {
    pub(super) fn new(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(&letter) = letters.get(at) {
            at += 1;
            tokens.push(match letter {
                '*' => Token::Many,
                '?' => Token::One,
                '[' => match Class::read(&letters[at..]) {
                    Some((class, length)) => {
                        at += length;
                        Token::Class(class)
                    }
                    None => Token::Letter('['),
                },
                letter => Token::Letter(letter),
            });
        }
        Self {
            text: text.to_owned(),
            tokens,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text itself, if no other text matches.
    pub(super) fn literal(&self) -> Option<&str> {
        let is_letter = |token: &Token| matches!(token, Token::Letter(_));
        self.tokens.iter().all(is_letter).then_some(&self.text)
    }

    /// Whether the whole text matches. Of several stars, only the last one is tried again.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut token, mut letter) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match (self.tokens.get(token), text.get(letter)) {
                (None, None) => return true,
                (Some(Token::Many), _) => {
                    token += 1;
                    retry = Some((token, letter));
                }
                (Some(expected), Some(&found)) if expected.matches(found) => {
                    token += 1;
                    letter += 1;
                }
                _ => match retry {
                    Some((after, from)) if from < text.len() => {
                        retry = Some((after, from + 1));
                        (token, letter) = (after, from + 1);
                    }
                    _ => return false,
                },
            }
        }
    }
}

// === impl Token ===

impl Token {
    fn matches(&self, letter: char) -> bool {
        match self {
            Self::Letter(expected) => *expected == letter,
            Self::One => true,
            Self::Many => false,
            Self::Class(class) => {
                let mut ranges = class.ranges.iter();
                ranges.any(|&(first, last)| first <= letter && letter <= last) != class.negated
            }
        }
    }
}

// === impl Class ===

impl Class {
    /// Reads the class after an opening bracket; `None` if the bracket is never closed.
    fn read(letters: &[char]) -> Option<(Self, usize)> {
        let negated = letters.first() == Some(&'!');
        let begin = usize::from(negated);
        // A bracket right after the opening one is a character of the class.
        let search = begin + 1;
        let end = letters.get(search..)?.iter().position(|&it| it == ']')? + search;
        let mut ranges = Vec::new();
        let mut rest = &letters[begin..end];
        while let [first, tail @ ..] = rest {
            if let ['-', last, tail @ ..] = tail {
                ranges.push((*first, *last));
                rest = tail;
            } else {
                ranges.push((*first, *first));
                rest = tail;
            }
        }
        Some((Self { negated, ranges }, end + 1))
    }
}
