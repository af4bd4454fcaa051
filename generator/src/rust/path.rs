//! Full paths of Rust items. The printer shortens them; until then, two equal paths are one item.

use std::fmt;
use std::sync::Arc;

use super::prelude;

/// The full path of an item; cheap to copy, because generated types repeat a few of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RustPath {
    root: PathRoot,
    is_in_prelude: bool,
    names: Arc<[String]>,
}

/// The start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathRoot {
    /// Another crate, which is the first name.
    External,
    /// `crate::`.
    ThisCrate,
    /// This many `super::`.
    Super(usize),
    /// The module itself; also primitive types, which every module has.
    Local,
}

/// The text is not a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a path such as `schemars::JsonSchema`")]
pub struct NotARustPath;

/// Whether a path names an item: words such as `super` are only at its start, and not all of it.
pub(super) fn names_item(path: &syn::Path) -> bool {
    let is = |it: &syn::PathSegment, words: &[&str]| words.iter().any(|word| it.ident == word);
    let mut segments = path.segments.iter().peekable();
    if path.leading_colon.is_none() && segments.next_if(|it| is(it, &["crate"])).is_none() {
        let _ = segments.next_if(|it| is(it, &["self"]));
        while segments.next_if(|it| is(it, &["super"])).is_some() {}
    }
    segments.peek().is_some() && segments.all(|it| !is(it, &["crate", "self", "super", "Self"]))
}

// === impl RustPath ===

impl RustPath {
    /// A path inside of another crate: `std::collections::BTreeMap`, or the path of a name of the
    /// prelude: `Vec`.
    #[must_use]
    pub fn external(path: &str) -> Self {
        let names: Vec<&str> = path.split("::").collect();
        let names = match names.as_slice() {
            [name] => prelude::find(name).unwrap_or(&names),
            _ => &names,
        };
        Self::new(PathRoot::External, names)
    }

    /// A path inside of the crate that has the generated code.
    #[must_use]
    pub fn this_crate(names: &[&str]) -> Self {
        Self::new(PathRoot::ThisCrate, names)
    }

    /// A path from this many modules above.
    #[must_use]
    pub fn above(levels: usize, names: &[&str]) -> Self {
        Self::new(PathRoot::Super(levels), names)
    }

    /// A name of the module itself, or a primitive type.
    #[must_use]
    pub fn local(name: &str) -> Self {
        Self::new(PathRoot::Local, &[name])
    }

    pub(super) fn new(root: PathRoot, names: &[&str]) -> Self {
        Self {
            root,
            is_in_prelude: root == PathRoot::External && prelude::contains(names),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Reads a path without generic arguments.
    ///
    /// # Errors
    /// If it is not such a path.
    pub fn parse(text: &str) -> Result<Self, NotARustPath> {
        let path: syn::Path = syn::parse_str(text).map_err(|_| NotARustPath)?;
        if path.segments.iter().any(|it| !it.arguments.is_none()) || !names_item(&path) {
            return Err(NotARustPath);
        }
        Ok(Self::of_syntax(&path))
    }

    /// The path of a syntax tree; a single name is one of the prelude, or local.
    pub(super) fn of_syntax(path: &syn::Path) -> Self {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (root, names) = match names.as_slice() {
            _ if path.leading_colon.is_some() => (PathRoot::External, names.as_slice()),
            ["crate", rest @ ..] => (PathRoot::ThisCrate, rest),
            ["self", rest @ ..] => (PathRoot::Super(0), rest),
            ["super", ..] => {
                let levels = names.iter().take_while(|name| **name == "super").count();
                (
                    PathRoot::Super(levels),
                    names.get(levels..).unwrap_or_default(),
                )
            }
            [name] => match prelude::find(name) {
                Some(path) => (PathRoot::External, path),
                None => (PathRoot::Local, names.as_slice()),
            },
            names => (PathRoot::External, names),
        };
        Self::new(root, names)
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// The path before the last name, as text.
    #[must_use]
    pub fn module(&self) -> String {
        let names = self.names.split_last().map_or(&[][..], |(_, it)| it);
        let names = names.join("::");
        match self.root {
            PathRoot::External | PathRoot::Local => names,
            PathRoot::ThisCrate => format!("crate::{names}"),
            PathRoot::Super(levels) => format!("{}{names}", "super::".repeat(levels)),
        }
    }

    /// The names after the root.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The start.
    #[must_use]
    pub const fn root(&self) -> PathRoot {
        self.root
    }

    /// Whether every module has it under its last name without an import.
    #[must_use]
    pub fn needs_no_import(&self) -> bool {
        self.root == PathRoot::Local || self.is_in_prelude
    }

    /// Whether it is this external path.
    #[must_use]
    pub fn is(&self, path: &str) -> bool {
        self.root == PathRoot::External
            && self.names.iter().map(String::as_str).eq(path.split("::"))
    }
}

impl fmt::Display for RustPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            PathRoot::External if self.needs_no_import() => return f.write_str(self.name()),
            PathRoot::External | PathRoot::Local => {}
            PathRoot::ThisCrate => f.write_str("crate::")?,
            PathRoot::Super(0) => f.write_str("self::")?,
            PathRoot::Super(levels) => f.write_str(&"super::".repeat(levels))?,
        }
        f.write_str(&self.names.join("::"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust::RustType;

    #[test]
    fn a_path_ends_in_the_name_of_an_item() {
        for good in [
            "A",
            "a::B",
            "::a::B",
            "crate::A",
            "self::A",
            "super::super::A",
            "self::super::A",
            "r#type::A",
        ] {
            assert!(RustPath::parse(good).is_ok(), "{good}");
            assert!(RustType::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "crate",
            "self",
            "super",
            "Self",
            "super::super",
            "a::self",
            "a::super::B",
            "crate::super::A",
            "Self::A",
            "::crate::A",
            "super::crate::A",
            "Vec<Self>",
            "a::B<crate>",
        ] {
            assert!(RustPath::parse(bad).is_err(), "{bad}");
            assert!(RustType::parse(bad).is_err(), "{bad}");
        }
    }
}
