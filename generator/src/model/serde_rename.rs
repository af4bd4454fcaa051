//! Chooses `rename_all`, so that the fewest fields and variants need a `rename`.

/// A value of serde's `rename_all`, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameRule {
    /// No rule.
    None,
    /// `lowercase`
    Lower,
    /// `UPPERCASE`
    Upper,
    /// `camelCase`
    Camel,
    /// `PascalCase`
    Pascal,
    /// `snake_case`
    Snake,
    /// `SCREAMING_SNAKE_CASE`
    Screaming,
    /// `kebab-case`
    Kebab,
}

const FIELD_RULES: [RenameRule; 5] = [
    RenameRule::None,
    RenameRule::Camel,
    RenameRule::Pascal,
    RenameRule::Kebab,
    RenameRule::Screaming,
];
const VARIANT_RULES: [RenameRule; 7] = [
    RenameRule::None,
    RenameRule::Lower,
    RenameRule::Upper,
    RenameRule::Camel,
    RenameRule::Snake,
    RenameRule::Screaming,
    RenameRule::Kebab,
];

/// The rule that leaves the fewest fields to rename, given pairs of Rust and JSON names.
pub(super) fn for_fields<'a>(
    pairs: &(impl Iterator<Item = (&'a str, &'a str)> + Clone),
) -> RenameRule {
    best(&FIELD_RULES, |rule| {
        pairs
            .clone()
            .filter(|(rust, json)| !rule.gives_field(rust, json))
            .count()
    })
}

/// The rule that leaves the fewest variants to rename.
pub(super) fn for_variants<'a>(
    pairs: &(impl Iterator<Item = (&'a str, &'a str)> + Clone),
) -> RenameRule {
    best(&VARIANT_RULES, |rule| {
        pairs
            .clone()
            .filter(|(rust, json)| rule.variant(rust) != *json)
            .count()
    })
}

/// The rule with the lowest cost; a rule costs a line itself.
fn best(rules: &[RenameRule], renames: impl Fn(RenameRule) -> usize) -> RenameRule {
    rules
        .iter()
        .copied()
        .min_by_key(|rule| renames(*rule) * 2 + usize::from(*rule != RenameRule::None))
        .unwrap_or(RenameRule::None)
}

impl RenameRule {
    /// The value of `rename_all`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Lower => Some("lowercase"),
            Self::Upper => Some("UPPERCASE"),
            Self::Camel => Some("camelCase"),
            Self::Pascal => Some("PascalCase"),
            Self::Snake => Some("snake_case"),
            Self::Screaming => Some("SCREAMING_SNAKE_CASE"),
            Self::Kebab => Some("kebab-case"),
        }
    }

    /// Whether serde derives this name for a field.
    pub(super) fn gives_field(self, name: &str, json: &str) -> bool {
        match self {
            Self::None => name == json,
            // Both need as many letters as the name has without its underscores.
            Self::Camel | Self::Pascal => {
                let letters = name.bytes().filter(|it| *it != b'_').count();
                letters == json.len() && self.field(name) == json
            }
            _ => name.len() == json.len() && self.field(name) == json,
        }
    }

    /// The name that serde derives for a field.
    pub(super) fn field(self, name: &str) -> String {
        match self {
            Self::None | Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::Screaming => name.to_ascii_uppercase(),
            Self::Kebab => name.replace('_', "-"),
            Self::Pascal => {
                let mut capital = true;
                let mut out = String::new();
                for c in name.chars() {
                    if c == '_' {
                        capital = true;
                    } else {
                        out.push(if capital { c.to_ascii_uppercase() } else { c });
                        capital = false;
                    }
                }
                out
            }
            Self::Camel => lower_first(&Self::Pascal.field(name)),
        }
    }

    /// The name that serde derives for a variant.
    pub(super) fn variant(self, name: &str) -> String {
        match self {
            Self::None | Self::Pascal => name.to_owned(),
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Camel => lower_first(name),
            Self::Snake => {
                let mut out = String::new();
                for (index, c) in name.char_indices() {
                    if index > 0 && c.is_uppercase() {
                        out.push('_');
                    }
                    out.push(c.to_ascii_lowercase());
                }
                out
            }
            Self::Screaming => Self::Snake.variant(name).to_ascii_uppercase(),
            Self::Kebab => Self::Snake.variant(name).replace('_', "-"),
        }
    }
}

/// Empty if the first letter is not ASCII: serde lower-cases the first byte, and panics there.
fn lower_first(name: &str) -> String {
    if !name.starts_with(|c: char| c.is_ascii()) {
        return String::new();
    }
    let mut chars = name.chars();
    chars
        .next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .chain(chars)
        .collect()
}
