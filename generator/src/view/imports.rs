//! `use` declarations, sorted and broken into lines as rustfmt does. Hand-written, because
//! prettyplease neither sorts nor merges them.

use std::collections::{BTreeMap, BTreeSet};

/// The widest line.
const LINE_WIDTH: usize = 100;

/// The widest declaration of several names on one line.
const LIST_WIDTH: usize = 98;

/// The names that a module imports, by the path before them.
#[derive(Clone, Debug, Default)]
pub(super) struct ImportList {
    modules: BTreeMap<String, BTreeSet<String>>,
    names: BTreeMap<String, String>,
}

impl ImportList {
    /// Reserves a name for a type of the module itself.
    pub(super) fn reserve(&mut self, name: &str) {
        self.names.insert(name.to_owned(), name.to_owned());
    }

    /// The short name of a path, which is imported unless that name already means another path.
    pub(super) fn add(&mut self, path: &str) -> String {
        let Some((module, name)) = path.rsplit_once("::") else {
            return path.to_owned();
        };
        let owner = self
            .names
            .entry(name.to_owned())
            .or_insert_with(|| path.to_owned());
        if owner != path {
            return path.to_owned();
        }
        self.modules
            .entry(module.to_owned())
            .or_default()
            .insert(name.to_owned());
        name.to_owned()
    }

    /// The declarations, line by line.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut modules: Vec<_> = self.modules.iter().collect();
        modules.sort_by_key(|(module, names)| sort_key(module, names.iter()));
        modules
            .into_iter()
            .flat_map(|(module, names)| {
                declaration("use", module, names.iter().map(String::as_str))
            })
            .collect()
    }
}

/// Sorts by segments, lists last.
pub(super) fn sort_key<'a>(
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
