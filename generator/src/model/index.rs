//! Indices and the Rust types of their keys and values.

use std::collections::BTreeMap;

use super::common_modules::CommonModule;
use crate::rust::{NotARustType, PathRoot, RustPath, RustType};

/// An index that the manifest declares, for one or more kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The name in the manifest.
    pub name: String,
    /// The Rust type that stands for it.
    pub type_name: String,
    /// The type of the keys.
    pub keys: IndexType,
    /// The type of the values.
    pub values: IndexType,
}

/// A Rust type that the manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexType {
    /// The type as the manifest has it.
    pub written: String,
    /// The same type, with the path of each name.
    pub resolved: RustType,
}

// === impl Index ===

impl Index {
    /// The path of the type that stands for it.
    #[must_use]
    pub fn path(&self) -> RustPath {
        CommonModule::Indices.path(&[&self.type_name])
    }
}

/// The reason why an index cannot hold a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIndexType {
    /// The text is not a Rust type.
    #[error("`{0}` is not a Rust type")]
    Syntax(String),
    /// The type borrows, or cannot be the type of a field.
    #[error("`{0}` cannot be kept: it borrows, or is not a type of a field")]
    NotOwned(String),
    /// The type has an unknown name.
    #[error("there is no type `{0}`")]
    Unknown(String),
    /// The type of the keys lacks `Eq` or `Hash`.
    #[error("`{0}` cannot be a key: it cannot be compared for equality and hashed")]
    NotAKey(String),
}

/// Types of the prelude that can be kept.
const PRELUDE: &[&str] = &["Box", "Option", "Result", "String", "Vec"];

/// The primitive types.
const PRIMITIVE: &[&str] = &[
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "u128", "u16", "u32",
    "u64", "u8", "usize",
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

impl IndexType {
    /// The type of the values of an index; `kinds` are the types of the operator's kinds with
    /// their paths.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn of_values(
        text: &str,
        kinds: &BTreeMap<String, RustPath>,
    ) -> Result<Self, InvalidIndexType> {
        Self::new(text, kinds, &[])
    }

    /// The type of the keys of an index.
    ///
    /// # Errors
    /// If it cannot be kept, or cannot be a key.
    pub fn of_keys(
        text: &str,
        kinds: &BTreeMap<String, RustPath>,
    ) -> Result<Self, InvalidIndexType> {
        Self::new(text, kinds, UNFIT_FOR_KEYS)
    }

    fn new(
        text: &str,
        kinds: &BTreeMap<String, RustPath>,
        unfit: &[&str],
    ) -> Result<Self, InvalidIndexType> {
        // The doc comment of the index shows the type as it was written.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:<>,()[]; ".contains(c);
        let written = RustType::parse(text).map_err(|problem| match problem {
            NotARustType::Syntax => InvalidIndexType::Syntax(text.to_owned()),
            NotARustType::Unsupported => InvalidIndexType::NotOwned(text.to_owned()),
        })?;
        if written.has_lifetime() {
            return Err(InvalidIndexType::NotOwned(text.to_owned()));
        }
        let mut problem = None;
        let resolved = written.map_paths(&mut |path| {
            if unfit.contains(&path.name()) {
                problem.get_or_insert(InvalidIndexType::NotAKey(path.name().to_owned()));
            }
            resolve(path, kinds).unwrap_or_else(|unknown| {
                problem.get_or_insert(unknown);
                path.clone()
            })
        });
        match problem {
            Some(problem) => Err(problem),
            None if !text.chars().all(is_plain) => Err(InvalidIndexType::Syntax(text.to_owned())),
            None => Ok(Self {
                written: text.to_owned(),
                resolved,
            }),
        }
    }
}

/// The path of a name; a path of several names is complete.
fn resolve(
    path: &RustPath,
    kinds: &BTreeMap<String, RustPath>,
) -> Result<RustPath, InvalidIndexType> {
    let name = path.name();
    let is_prelude = path.root() == PathRoot::External && path.needs_no_import();
    if path.root() != PathRoot::Local && !is_prelude {
        return Ok(path.clone());
    }
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    let found = known.map(|(_, path)| RustPath::external(path));
    let has_no_path = PRELUDE.contains(&name) || PRIMITIVE.contains(&name);
    found
        .or_else(|| kinds.get(name).cloned())
        .or_else(|| has_no_path.then(|| path.clone()))
        .ok_or_else(|| InvalidIndexType::Unknown(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> BTreeMap<String, RustPath> {
        [(
            "Pod".to_owned(),
            RustPath::this_crate(&["generated", "pod", "Pod"]),
        )]
        .into()
    }

    #[test]
    fn names_get_their_paths() {
        for (written, resolved) in [
            ("String", "String"),
            ("()", "()"),
            ("(String, Option<u32>)", "(String, Option<u32>)"),
            ("Arc<Pod>", "std::sync::Arc<crate::generated::pod::Pod>"),
            (
                "BTreeMap<String, Vec<Value>>",
                "std::collections::BTreeMap<String, Vec<serde_json::Value>>",
            ),
            ("crate::handlers::PodInfo", "crate::handlers::PodInfo"),
            ("[u8; 4]", "[u8; 4]"),
        ] {
            let found = IndexType::of_values(written, &kinds()).map(|it| it.resolved.to_string());
            assert_eq!(found.as_deref(), Ok(resolved));
        }
    }

    #[test]
    fn types_that_an_index_cannot_hold_are_refused() {
        let problem = |text| {
            IndexType::of_values(text, &kinds())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(problem("Vec<"), "`Vec<` is not a Rust type");
        assert_eq!(
            problem("&str"),
            "`&str` cannot be kept: it borrows, or is not a type of a field"
        );
        assert_eq!(
            problem("Box<dyn Fn()>"),
            "`Box<dyn Fn()>` cannot be kept: it borrows, or is not a type of a field"
        );
        assert_eq!(problem("Vec<PodInfo>"), "there is no type `PodInfo`");
    }

    #[test]
    fn keys_need_equality_and_a_hash() {
        let problem = |text| IndexType::of_keys(text, &kinds()).unwrap_err();
        assert_eq!(
            problem("(u8, f64)"),
            InvalidIndexType::NotAKey("f64".to_owned())
        );
        assert!(IndexType::of_values("f64", &kinds()).is_ok());
    }
}
