//! Indices and the Rust types of their keys and values.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

/// An index that the manifest declares, for one or more kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The name in the manifest.
    pub name: String,
    /// The Rust type that stands for it.
    pub type_name: String,
    /// The type of the keys.
    pub keys: RustType,
    /// The type of the values.
    pub values: RustType,
}

/// A Rust type that the manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustType {
    /// The type as the manifest has it.
    pub written: String,
    /// The same type, with a path for each name that needs one.
    pub resolved: String,
}

/// The reason why an index cannot hold a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIndexType {
    /// The text is not a Rust type.
    #[error("`{0}` is not a Rust type")]
    Syntax(String),
    /// The type borrows, or cannot be the type of a field.
    #[error("`{0}` cannot be kept: an index owns what is in it")]
    NotOwned(String),
    /// The type has an unknown name.
    #[error("there is no type `{0}`")]
    Unknown(String),
    /// The type of the keys lacks `Eq` or `Hash`.
    #[error("`{0}` cannot be a key: it cannot be compared for equality and hashed")]
    NotAKey(String),
}

/// Types that need no path.
const PLAIN: &[&str] = &[
    "Box", "Option", "Result", "String", "Vec", "bool", "char", "f32", "f64", "i128", "i16", "i32",
    "i64", "i8", "isize", "u128", "u16", "u32", "u64", "u8", "usize",
];

/// Types that the manifest may name without a path, with their paths.
const KNOWN: &[(&str, &str)] = &[
    ("Arc", "std::sync::Arc"),
    ("BTreeMap", "std::collections::BTreeMap"),
    ("BTreeSet", "std::collections::BTreeSet"),
    ("Duration", "std::time::Duration"),
    ("HashMap", "std::collections::HashMap"),
    ("HashSet", "std::collections::HashSet"),
    ("Value", "serde_json::Value"),
];

/// Types that cannot be keys.
const UNFIT_FOR_KEYS: &[&str] = &["HashMap", "HashSet", "f32", "f64"];

/// Whether the type of an index cannot have this name, because keys and values may use it.
#[must_use]
pub fn is_taken(type_name: &str) -> bool {
    PLAIN.contains(&type_name) || matches!(type_name, "Index" | "Send" | "Sync")
}

impl RustType {
    /// The type of the values of an index; `kinds` are the types of the operator's kinds with
    /// their paths.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn of_values(
        text: &str,
        kinds: &BTreeMap<String, String>,
    ) -> Result<Self, InvalidIndexType> {
        Self::new(text, kinds, &[])
    }

    /// The type of the keys of an index.
    ///
    /// # Errors
    /// If it cannot be kept, or cannot be a key.
    pub fn of_keys(text: &str, kinds: &BTreeMap<String, String>) -> Result<Self, InvalidIndexType> {
        Self::new(text, kinds, UNFIT_FOR_KEYS)
    }

    fn new(
        text: &str,
        kinds: &BTreeMap<String, String>,
        unfit: &[&str],
    ) -> Result<Self, InvalidIndexType> {
        // Comments and macros have no place in a type that is printed as it was written.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:<>,()[]; ".contains(c);
        let syntax = || InvalidIndexType::Syntax(text.to_owned());
        let parsed: syn::Type = syn::parse_str(text).map_err(|_| syntax())?;
        let mut names = NameResolver {
            text,
            kinds,
            unfit,
            replacements: Vec::new(),
            problem: None,
        };
        names.visit_type(&parsed);
        if let Some(problem) = names.problem {
            return Err(problem);
        }
        if !text.chars().all(is_plain) {
            return Err(syntax());
        }
        let mut resolved = text.to_owned();
        for (range, path) in names.replacements.into_iter().rev() {
            resolved.replace_range(range, &path);
        }
        Ok(Self {
            written: text.to_owned(),
            resolved,
        })
    }
}

/// Visits all names in a type from left to right, and finds their paths.
struct NameResolver<'a> {
    text: &'a str,
    kinds: &'a BTreeMap<String, String>,
    unfit: &'a [&'a str],
    replacements: Vec<(std::ops::Range<usize>, String)>,
    problem: Option<InvalidIndexType>,
}

impl NameResolver<'_> {
    fn refuse(&mut self, problem: InvalidIndexType) {
        self.problem.get_or_insert(problem);
    }
}

impl<'ast> Visit<'ast> for NameResolver<'_> {
    fn visit_type(&mut self, node: &'ast syn::Type) {
        match node {
            syn::Type::Path(path) if path.qself.is_none() => visit::visit_type(self, node),
            syn::Type::Tuple(_) | syn::Type::Array(_) | syn::Type::Paren(_) => {
                visit::visit_type(self, node);
            }
            _ => self.refuse(InvalidIndexType::NotOwned(self.text.to_owned())),
        }
    }

    fn visit_lifetime(&mut self, _: &'ast syn::Lifetime) {
        self.refuse(InvalidIndexType::NotOwned(self.text.to_owned()));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let last = path
            .segments
            .last()
            .map(|segment| segment.ident.to_string());
        if let Some(last) = last.filter(|last| self.unfit.contains(&last.as_str())) {
            self.refuse(InvalidIndexType::NotAKey(last));
        }
        // A path of several segments is complete.
        if let (1, Some(segment)) = (path.segments.len(), path.segments.first()) {
            let name = segment.ident.to_string();
            let known = KNOWN.iter().find(|(known, _)| *known == name);
            let place = known.map(|(_, path)| (*path).to_owned());
            match place.or_else(|| self.kinds.get(&name).cloned()) {
                Some(path) => {
                    let range = segment.ident.span().byte_range();
                    self.replacements.push((range, path));
                }
                None if PLAIN.contains(&name.as_str()) => {}
                None => self.refuse(InvalidIndexType::Unknown(name)),
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_expr(&mut self, length: &'ast syn::Expr) {
        if !matches!(length, syn::Expr::Lit(_)) {
            self.refuse(InvalidIndexType::Syntax(self.text.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> BTreeMap<String, String> {
        [("Pod".to_owned(), "super::pod::Pod".to_owned())].into()
    }

    #[test]
    fn names_get_their_paths() {
        for (written, resolved) in [
            ("String", "String"),
            ("()", "()"),
            ("(String, Option<u32>)", "(String, Option<u32>)"),
            ("Arc<Pod>", "std::sync::Arc<super::pod::Pod>"),
            (
                "BTreeMap<String, Vec<Value>>",
                "std::collections::BTreeMap<String, Vec<serde_json::Value>>",
            ),
            ("crate::handlers::PodInfo", "crate::handlers::PodInfo"),
            ("[u8; 4]", "[u8; 4]"),
        ] {
            let found = RustType::of_values(written, &kinds()).map(|it| it.resolved);
            assert_eq!(found.as_deref(), Ok(resolved));
        }
    }

    #[test]
    fn types_that_an_index_cannot_hold_are_refused() {
        let problem = |text| RustType::of_values(text, &kinds()).unwrap_err().to_string();
        assert_eq!(problem("Vec<"), "`Vec<` is not a Rust type");
        assert_eq!(
            problem("&str"),
            "`&str` cannot be kept: an index owns what is in it"
        );
        assert_eq!(
            problem("Box<dyn Fn()>"),
            "`Box<dyn Fn()>` cannot be kept: an index owns what is in it"
        );
        assert_eq!(problem("Vec<PodInfo>"), "there is no type `PodInfo`");
    }

    #[test]
    fn keys_need_equality_and_a_hash() {
        let problem = |text| RustType::of_keys(text, &kinds()).unwrap_err();
        assert_eq!(
            problem("(u8, f64)"),
            InvalidIndexType::NotAKey("f64".to_owned())
        );
        assert!(RustType::of_values("f64", &kinds()).is_ok());
    }
}
