//! The names that a module has, and the choice between a short name and a path.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::path::{PathRoot, RustPath};
use super::prelude;
use super::written_attributes::WrittenAttributes;

/// The names of one module.
#[derive(Debug, Default)]
pub(super) struct ModuleScope {
    location: Vec<String>,
    /// The names that the module declares; for a re-export with the path of the item.
    declared: FxHashMap<String, Option<RustPath>>,
    /// The paths that the module imports, by their names.
    imported: BTreeMap<String, Vec<String>>,
    /// The doc comments and attributes so far.
    pub(super) attributes: WrittenAttributes,
    /// The derives that were written last, which mostly repeat.
    pub(super) last_derives: Option<(Vec<RustPath>, String)>,
}

/// The imported names of each module.
pub(super) type ImportedItems = BTreeMap<Vec<String>, BTreeSet<String>>;

/// A path as the module writes it.
pub(super) struct WrittenPath {
    /// Whether it starts with `::`.
    pub(super) leading: bool,
    pub(super) names: Vec<String>,
}

// === impl ModuleScope ===

impl ModuleScope {
    pub(super) fn new(location: &[String], attributes: WrittenAttributes) -> Self {
        Self {
            location: location.to_vec(),
            attributes,
            ..Self::default()
        }
    }

    /// A name that the module declares itself.
    pub(super) fn declare(&mut self, name: String) {
        self.declared.insert(name, None);
    }

    /// Whether the module declares a name.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.declared.contains_key(name)
    }

    /// A name that the module re-exports.
    pub(super) fn reexport(&mut self, path: RustPath, name: String) {
        self.declared.insert(name, Some(path));
    }

    /// The path as this module writes it; adds the import that it needs.
    pub(super) fn write(&mut self, path: &RustPath) -> WrittenPath {
        match self.short(path) {
            Some(names) => short(names),
            None => self.full(path),
        }
    }

    /// The end of the path that is enough here, after an import if it needs one.
    pub(super) fn short<'p>(&mut self, path: &'p RustPath) -> Option<&'p [String]> {
        let names = path.names();
        if path.root() == PathRoot::Local {
            return Some(names);
        }
        if path.root() == PathRoot::ThisCrate
            && let Some([own, rest @ ..]) = names.strip_prefix(self.location.as_slice())
            && self.declared.get(own) == Some(&None)
        {
            return names.get(names.len() - 1 - rest.len()..);
        }
        // A variant of the prelude, such as `Some`, is a name of its own.
        if path.needs_no_import() && !self.declared.contains_key(path.name()) {
            return names.get(names.len() - 1..);
        }
        let owner = names.iter().position(|name| is_type(name));
        // A function is called with its module.
        let owner = owner.unwrap_or(names.len().saturating_sub(2));
        let (item, name) = (names.get(..=owner)?, names.get(owner)?);
        let is_short = match self.declared.get(name) {
            Some(Some(known)) => known.root() == path.root() && known.names() == item,
            Some(None) => false,
            None => {
                // A whole path of the prelude is found above.
                let is_inner = path.root() == PathRoot::External && item.len() < names.len();
                (is_inner && prelude::contains(item)) || self.import(path.root(), item)
            }
        };
        if is_short {
            return names.get(owner..);
        }
        // A long path is shortened to the module and the name.
        let module = item.get(..owner).filter(|module| module.len() > 2)?;
        let is_free = module.last().is_some_and(|it| !self.declares(it));
        (is_free && self.import(path.root(), module)).then(|| &names[owner - 1..])
    }

    /// Imports an item unless that is impossible.
    fn import(&mut self, root: PathRoot, item: &[String]) -> bool {
        let [_, .., name] = item else {
            return false;
        };
        if root != PathRoot::External || prelude::is_in_prelude(name) {
            return false;
        }
        match self.imported.get(name) {
            Some(owner) => owner == item,
            None => {
                self.imported.insert(name.clone(), item.to_vec());
                true
            }
        }
    }

    /// The path without an import.
    pub(super) fn full(&self, path: &RustPath) -> WrittenPath {
        let names = path.names();
        match path.root() {
            PathRoot::Local => short(names),
            PathRoot::External => WrittenPath {
                leading: names
                    .first()
                    .is_some_and(|it| self.declared.contains_key(it)),
                names: names.to_vec(),
            },
            PathRoot::Super(levels) => {
                let up = std::iter::repeat_n("super".to_owned(), levels);
                let here = (levels == 0).then(|| "self".to_owned());
                let names = here.into_iter().chain(up).chain(names.iter().cloned());
                short(&names.collect::<Vec<_>>())
            }
            PathRoot::ThisCrate => self.inside_crate(names),
        }
    }

    /// A path inside of the crate: relative if only the module itself differs.
    fn inside_crate(&self, names: &[String]) -> WrittenPath {
        let parents = self.location.split_last().map_or(&[][..], |(_, it)| it);
        let below = names.strip_prefix(parents).filter(|_| !parents.is_empty());
        let (start, rest) = match below {
            Some(rest) => ("super", rest),
            None => ("crate", names),
        };
        short(&[&[start.to_owned()], rest].concat())
    }

    /// The imports, when all paths are written.
    pub(super) fn into_imports(self) -> ImportedItems {
        let mut list = ImportedItems::new();
        for (name, path) in self.imported {
            let module = path[..path.len() - 1].to_vec();
            list.entry(module).or_default().insert(name);
        }
        list
    }
}

impl WrittenPath {
    /// The path as text.
    pub(super) fn text(&self) -> String {
        let start = if self.leading { "::" } else { "" };
        format!("{start}{}", self.names.join("::"))
    }
}

fn short(names: &[String]) -> WrittenPath {
    WrittenPath {
        leading: false,
        names: names.to_vec(),
    }
}

fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}
