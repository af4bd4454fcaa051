//! Turns names of schemas and kinds into Rust identifiers: case, keywords, symbols, collisions.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::dependencies::has_crate;

/// The name of a field, a function or a module: a valid identifier in snake case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RustIdent(String);

/// The name of a type or a variant: a valid identifier in upper camel case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName(String);

const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Keywords that cannot be written as `r#…`.
const NEVER_RAW: &[&str] = &["_", "crate", "self", "super"];

// === impl RustIdent ===

impl RustIdent {
    /// The text in snake case.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::from_snake(snake(text))
    }

    /// The name of a module: never a keyword, because its file has the same name, and never the
    /// name of a crate.
    #[must_use]
    pub fn of_module(text: &str) -> Self {
        let name = Self::new(text);
        match name.as_str().strip_prefix("r#") {
            Some(keyword) => Self(format!("{keyword}_")),
            None if has_crate(name.as_str()) => Self(format!("{name}_")),
            None => name,
        }
    }

    fn from_snake(mut name: String) -> Self {
        if name.is_empty() {
            name.push_str("field");
        }
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, '_');
        }
        if NEVER_RAW.contains(&name.as_str()) {
            name.push('_');
        } else if KEYWORDS.contains(&name.as_str()) {
            name.insert_str(0, "r#");
        }
        Self(name)
    }

    /// The first of `name`, `name_2`, `name_3`… that is not in `taken`, and adds it there.
    #[must_use]
    pub fn unique(text: &str, taken: &mut BTreeSet<Self>) -> Self {
        Self::new(text).or_numbered(taken)
    }

    /// This name, or else the first of `name_2`, `name_3`… that is not in `taken`.
    #[must_use]
    pub fn or_numbered(self, taken: &mut BTreeSet<Self>) -> Self {
        if taken.insert(self.clone()) {
            return self;
        }
        let stem = self.bare().trim_end_matches('_').to_owned();
        (2..)
            .map(|n| Self::from_snake(format!("{stem}_{n}")))
            .find(|name| taken.insert(name.clone()))
            .expect("there are more numbers than names")
    }

    /// The name as it is printed, with `r#` where needed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without `r#`, as serde sees it.
    #[must_use]
    pub fn bare(&self) -> &str {
        self.0.strip_prefix("r#").unwrap_or(&self.0)
    }
}

impl fmt::Display for RustIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl TypeName ===

impl TypeName {
    /// The text in upper camel case.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::from_pascal(pascal(text))
    }

    /// The name of a kind, which keeps its capitals unless it consists of capitals only.
    #[must_use]
    pub fn of_kind(kind: &str) -> Self {
        let shouted = kind.len() > 2 && kind.chars().all(|c| c.is_ascii_uppercase());
        let plain = kind.starts_with(|c: char| c.is_ascii_uppercase())
            && kind.chars().all(|c| c.is_ascii_alphanumeric());
        if plain && !shouted {
            Self::from_pascal(kind.to_owned())
        } else {
            Self::new(kind)
        }
    }

    /// The name of a variant for a value of an enum.
    #[must_use]
    pub fn of_value(value: &str) -> Self {
        let name = pascal(value);
        if name.is_empty() {
            return Self::from_pascal(symbols(value));
        }
        match value.strip_prefix('-') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                Self::from_pascal(format!("Minus{name}"))
            }
            _ => Self::from_pascal(name),
        }
    }

    /// This name with a suffix.
    #[must_use]
    pub fn then(&self, suffix: &str) -> Self {
        Self::from_pascal(join(self.0.clone(), suffix.trim_end_matches('_')))
    }

    /// A concatenation of type names.
    pub(super) fn new_joined(name: &str) -> Self {
        Self::from_pascal(name.to_owned())
    }

    fn from_pascal(mut name: String) -> Self {
        if name.is_empty() {
            name.push_str("Empty");
        }
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, 'V');
        }
        if name == "Self" {
            name.push('_');
        }
        Self(name)
    }

    /// The name as it is printed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not a valid type name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name for a type: use letters and digits, starting with a capital")]
pub struct InvalidTypeName(String);

impl FromStr for TypeName {
    type Err = InvalidTypeName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let capital = text.starts_with(|c: char| c.is_ascii_uppercase());
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if capital && plain && text != "Self" {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidTypeName(text.to_owned()))
        }
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names of the variants of an enum, in the order of its values, which are all different.
#[must_use]
pub fn variants(values: &[&str]) -> Vec<TypeName> {
    let mut taken = BTreeSet::new();
    let mut names: Vec<Option<TypeName>> = vec![None; values.len()];
    // A value that equals its variant name takes that name first.
    for (slot, value) in names.iter_mut().zip(values) {
        let name = TypeName::of_value(value);
        if name.as_str() == *value && taken.insert(name.clone()) {
            *slot = Some(name);
        }
    }
    for (slot, value) in names.iter_mut().zip(values) {
        if slot.is_none() {
            *slot = Some(variant(value, &mut taken));
        }
    }
    names.into_iter().flatten().collect()
}

fn variant(value: &str, taken: &mut BTreeSet<TypeName>) -> TypeName {
    let name = TypeName::of_value(value);
    let cased = if value.chars().all(|c| !c.is_lowercase()) {
        name.then("Upper")
    } else if value.chars().all(|c| !c.is_uppercase()) {
        name.then("Lower")
    } else {
        name.then("Mixed")
    };
    let spelled = TypeName::from_pascal(spelled(value));
    let numbered = (2..).map(|n| name.then(&n.to_string()));
    [name.clone(), spelled, cased]
        .into_iter()
        .chain(numbered)
        .find(|name| taken.insert(name.clone()))
        .expect("there are more numbers than names")
}

/// The words of a name: `podIPs` is `pod`, `ips`; `HTTPRoute2x` is `http`, `route2x`.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    // Most names are one word.
    if !text.is_empty()
        && text
            .bytes()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    {
        return vec![text.to_owned()];
    }
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (index, &c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() && !is_plain_letter(c) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            if !c.is_ascii() {
                words.push(format!("u{:x}", u32::from(c)));
            }
            continue;
        }
        if c.is_uppercase() && starts_word(&chars, index) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        match c {
            // Otherwise it has a combining dot, which no file of a module may have in its name.
            '\u{130}' => word.push('i'),
            c => word.extend(c.to_lowercase()),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Whether the upper-case letter at `index` starts a word.
fn starts_word(chars: &[char], index: usize) -> bool {
    let Some(previous) = index.checked_sub(1).map(|before| chars[before]) else {
        return true;
    };
    if !previous.is_uppercase() {
        return true;
    }
    // The last capital of a run belongs to what follows, except in a plural such as `IPs`.
    let next = chars.get(index + 1).copied();
    let after = chars.get(index + 2).copied();
    let plural = next == Some('s') && after.is_none_or(|c| !c.is_lowercase());
    next.is_some_and(char::is_lowercase) && !plural
}

/// Letters beyond ASCII that rustc accepts without a warning.
fn is_plain_letter(c: char) -> bool {
    let compatibility =
        matches!(c, '\u{132}'..='\u{133}' | '\u{13f}'..='\u{140}' | '\u{149}' | '\u{17f}');
    let confusable = matches!(c, '\u{131}' | '\u{138}');
    matches!(c, '\u{c0}'..='\u{17f}') && c.is_alphabetic() && !compatibility && !confusable
}

fn snake(text: &str) -> String {
    words(text).join("_")
}

fn pascal(text: &str) -> String {
    words(text)
        .iter()
        .fold(String::new(), |name, word| join(name, &capital(word)))
}

/// Joins two parts, with an underscore between digits of different words.
fn join(mut name: String, part: &str) -> String {
    if name.ends_with('_') {
        name.pop();
    }
    let digits = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    if digits(name.chars().last()) && digits(part.chars().next()) {
        name.push('_');
    }
    name.push_str(part);
    name
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let Some(first) = chars.next() else {
        return String::new();
    };
    // `ß` becomes two letters, of which only the first is a capital in camel case.
    let mut letters = first.to_uppercase();
    let capital = letters.next().into_iter();
    capital
        .chain(letters.flat_map(char::to_lowercase))
        .chain(chars)
        .collect()
}

/// A name for a text that consists of symbols.
fn symbols(text: &str) -> String {
    match text {
        "=" | "==" => "Equal".to_owned(),
        "!=" | "<>" => "NotEqual".to_owned(),
        "<=" => "LessOrEqual".to_owned(),
        ">=" => "GreaterOrEqual".to_owned(),
        "=~" => "Match".to_owned(),
        "!~" => "NotMatch".to_owned(),
        _ => text.chars().map(symbol).collect(),
    }
}

/// A name with the symbols between the words spelled out.
fn spelled(text: &str) -> String {
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .fold(String::new(), |name, part| {
            let last = part.chars().last().filter(|c| !c.is_ascii_alphanumeric());
            join(name, &(pascal(part) + last.map_or("", symbol)))
        })
}

const fn symbol(c: char) -> &'static str {
    match c {
        '!' => "Not",
        '"' | '\'' => "Quote",
        '#' => "Hash",
        '$' => "Dollar",
        '%' => "Percent",
        '&' => "And",
        '(' | '[' | '{' => "Open",
        ')' | ']' | '}' => "Close",
        '*' => "Star",
        '+' => "Plus",
        ',' => "Comma",
        '-' => "Minus",
        '.' => "Dot",
        '/' => "Slash",
        ':' => "Colon",
        ';' => "Semicolon",
        '<' => "Less",
        '=' => "Equal",
        '>' => "Greater",
        '?' => "Question",
        '@' => "At",
        '\\' => "Backslash",
        '^' => "Caret",
        '_' => "Underscore",
        '`' => "Backtick",
        '|' => "Or",
        '~' => "Tilde",
        _ => "Symbol",
    }
}

/// Endings of singular words that look like plurals.
const NOT_PLURAL: &[&str] = &["ss", "us", "is", "ics", "dns", "tls", "aws", "fs", "https"];

/// Endings of which a plural loses two letters.
const LONG_PLURAL: &[&str] = &["sses", "shes", "tches", "xes", "zes", "uses"];

/// The singular of a plural: `policies` becomes `policy`, `status` stays.
#[must_use]
pub fn singular(plural: &str) -> String {
    let lower = plural.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
    let cut = |letters: usize| plural[..plural.len() - letters].to_owned();
    if plural.len() < 4 || ends(NOT_PLURAL) {
        plural.to_owned()
    } else if lower.ends_with("ies") && plural.len() > 4 {
        cut(3) + "y"
    } else if ends(LONG_PLURAL) {
        cut(2)
    } else if lower.ends_with('s') {
        cut(1)
    } else {
        plural.to_owned()
    }
}

#[cfg(test)]
mod tests;
