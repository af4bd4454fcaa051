//! `use` declarations for files of the user, sorted and broken into lines as rustfmt does.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::RustPath;

/// The widest line.
const LINE_WIDTH: usize = 100;

/// The widest declaration of several names on one line.
const LIST_WIDTH: usize = 98;

/// The items that a file of the user imports.
#[derive(Clone, Debug, Default)]
pub(super) struct ImportList {
    modules: BTreeMap<String, BTreeSet<String>>,
    /// The owner of each name; `None` for a name of the file itself.
    names: BTreeMap<String, Option<RustPath>>,
}

impl ImportList {
    /// Reserves a name of the file itself.
    pub(super) fn reserve(&mut self, name: &str) {
        self.names.insert(name.to_owned(), None);
    }

    /// The name of an item, which is imported unless that name already means another one.
    pub(super) fn add(&mut self, path: &RustPath) -> String {
        let owner = self.names.entry(path.name().to_owned());
        if owner.or_insert_with(|| Some(path.clone())).as_ref() == Some(path) {
            let names = self.modules.entry(path.module()).or_default();
            names.insert(path.name().to_owned());
        }
        self.text(path)
    }

    /// Imports everything that a module has.
    pub(super) fn add_all_of(&mut self, module: &str) {
        let names = self.modules.entry(module.to_owned()).or_default();
        names.insert("*".to_owned());
    }

    /// An item: its name if it is imported, or else its path.
    pub(super) fn text(&self, path: &RustPath) -> String {
        match self.names.get(path.name()) {
            Some(Some(owner)) if owner == path => path.name().to_owned(),
            None if path.needs_no_import() => path.name().to_owned(),
            _ => format!("{}::{}", path.module(), path.name()),
        }
    }

    /// The declarations, line by line; those of the standard library first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut modules: Vec<_> = self.modules.iter().collect();
        modules.sort_by_key(|(module, names)| sort_key(module, names.iter()));
        let (std, others): (Vec<_>, Vec<_>) = modules
            .into_iter()
            .partition(|(module, _)| module.split("::").next() == Some("std"));
        let lines = |modules: Vec<(&String, &BTreeSet<String>)>| -> Vec<String> {
            let lines = modules.into_iter().flat_map(|(module, names)| {
                declaration("use", module, names.iter().map(String::as_str))
            });
            lines.collect()
        };
        let groups = [lines(std), lines(others)];
        let groups = groups.into_iter().filter(|group| !group.is_empty());
        groups.collect::<Vec<_>>().join(&String::new())
    }
}

/// Sorts by segments, lists last.
fn sort_key<'a>(
    module: &str,
    names: impl ExactSizeIterator<Item = &'a String>,
) -> Vec<(bool, String)> {
    let list = names.len() > 1;
    let last = (list, names.into_iter().next().cloned().unwrap_or_default());
    let segments = module
        .split("::")
        .map(|segment| (false, segment.to_owned()));
    segments.chain([last]).collect()
}

/// One declaration, line by line.
pub(super) fn declaration<'a>(
    keyword: &str,
    module: &str,
    names: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    if let [name] = names.as_slice() {
        return vec![format!("{keyword} {module}::{name};")];
    }
    let line = format!("{keyword} {module}::{{{}}};", names.join(", "));
    if line.len() <= LIST_WIDTH {
        return vec![line];
    }
    let mut lines = vec![format!("{keyword} {module}::{{")];
    let mut current = String::from("   ");
    for (index, name) in names.iter().enumerate() {
        // The last name has no space after it.
        let space = usize::from(index + 1 < names.len());
        if current.len() + name.len() + 2 + space > LINE_WIDTH {
            lines.push(std::mem::replace(&mut current, String::from("   ")));
        }
        current.push(' ');
        current.push_str(name);
        current.push(',');
    }
    lines.push(current);
    lines.push("};".to_owned());
    lines
}
