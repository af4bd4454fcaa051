//! The Rust names of struct fields and enum variants, and their way to the names in JSON.

use std::collections::BTreeSet;

use super::identifier::{RustIdent, TypeName, variants};
use super::serde_rename::{self, RenameRule};

/// The names of the members of one type, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberNames<N> {
    /// The rule for the names in JSON.
    pub rule: RenameRule,
    /// The members.
    pub list: Vec<NamedMember<N>>,
    /// The member for what the schema does not list, if there can be one.
    pub other: Option<N>,
}

/// The name of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMember<N> {
    /// The name in Rust.
    pub rust: N,
    /// Whether the rule does not give the name in JSON.
    pub is_renamed: bool,
}

/// The names of the fields of a struct.
pub type FieldNames = MemberNames<RustIdent>;

/// The names of the variants of an enum.
pub type VariantNames = MemberNames<TypeName>;

// === impl MemberNames ===

impl<N> Default for MemberNames<N> {
    fn default() -> Self {
        Self {
            rule: RenameRule::None,
            list: Vec::new(),
            other: None,
        }
    }
}

impl<N> MemberNames<N> {
    /// The names in Rust.
    pub fn rust(&self) -> impl ExactSizeIterator<Item = &N> + Clone {
        self.list.iter().map(|member| &member.rust)
    }
}

impl FieldNames {
    /// Names the fields with these names in JSON, and one for undeclared members if there are any.
    /// A field that needs no rename gets its name first.
    pub(super) fn of_fields(json: &[&str], reserved: &[&str], has_undeclared: bool) -> Self {
        let mut taken: BTreeSet<RustIdent> =
            reserved.iter().map(|name| RustIdent::new(name)).collect();
        let mut names: Vec<Option<RustIdent>> = vec![None; json.len()];
        for (slot, json) in names.iter_mut().zip(json) {
            let name = RustIdent::new(json);
            let is_natural =
                name.bare() == *json || RenameRule::Camel.gives_field(name.bare(), json);
            if is_natural && taken.insert(name.clone()) {
                *slot = Some(name);
            }
        }
        let names: Vec<RustIdent> = names
            .into_iter()
            .zip(json)
            .map(|(slot, json)| slot.unwrap_or_else(|| RustIdent::unique(json, &mut taken)))
            .collect();
        let pairs = names.iter().map(RustIdent::bare).zip(json.iter().copied());
        let rule = serde_rename::for_fields(&pairs);
        let list = names.iter().zip(json).map(|(name, json)| NamedMember {
            rust: name.clone(),
            is_renamed: !rule.gives_field(name.bare(), json),
        });
        Self {
            rule,
            list: list.collect(),
            other: has_undeclared.then(|| RustIdent::unique("extra", &mut taken)),
        }
    }
}

impl VariantNames {
    /// Names the variants for these texts.
    pub(super) fn of_texts(texts: &[&str]) -> Self {
        let names = variants(texts);
        let pairs = names.iter().map(TypeName::as_str);
        let rule = serde_rename::for_variants(&pairs.zip(texts.iter().copied()));
        let list = names.iter().zip(texts).map(|(name, text)| NamedMember {
            rust: name.clone(),
            is_renamed: rule.variant(name.as_str()) != *text,
        });
        Self {
            rule,
            list: list.collect(),
            other: Some(other(&names)),
        }
    }

    /// Names the variants for these numbers, which serde does not see.
    pub(super) fn of_numbers(numbers: &[i64]) -> Self {
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let names = variants(&texts);
        let other = Some(other(&names));
        let list = names.into_iter().map(|rust| NamedMember {
            rust,
            is_renamed: false,
        });
        Self {
            rule: RenameRule::None,
            list: list.collect(),
            other,
        }
    }
}

fn other(names: &[TypeName]) -> TypeName {
    let other = TypeName::new("Other");
    let numbered = (2..).map(|n| other.then(&n.to_string()));
    [other.clone(), TypeName::new("Unknown")]
        .into_iter()
        .chain(numbered)
        .find(|name| !names.contains(name))
        .expect("there are more numbers than names")
}
