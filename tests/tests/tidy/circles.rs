//! Finds files of one crate that import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::layers::imports_of;
use crate::sources::SourceFile;

/// Groups of files that reach each other by imports, each group sorted by module path.
///
/// A child may use what its parent defines: that is how Rust nests modules, so imports of an
/// ancestor do not count.
pub(crate) fn circles(files: &[SourceFile]) -> Vec<Vec<String>> {
    let files: Vec<&SourceFile> = files.iter().filter(|file| file.is_layered()).collect();
    let modules: BTreeSet<&[String]> = files.iter().map(|file| file.module.as_slice()).collect();
    let mut imports: BTreeMap<&[String], BTreeSet<&[String]>> = BTreeMap::new();
    for file in &files {
        let targets = imports_of(file).into_iter().filter_map(|import| {
            (1..=import.target.len())
                .rev()
                .find_map(|length| modules.get(&import.target[..length]).copied())
        });
        imports.insert(
            &file.module,
            targets
                .filter(|target| !file.module.starts_with(target))
                .collect(),
        );
    }
    let reachable: BTreeMap<&[String], BTreeSet<&[String]>> = imports
        .keys()
        .map(|module| (*module, reachable_from(module, &imports)))
        .collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, others) in &reachable {
        if others.contains(module) {
            let members = others
                .iter()
                .filter(|other| reachable[*other].contains(module))
                .map(|other| other.join("::"))
                .collect();
            found.insert(members);
        }
    }
    found.into_iter().collect()
}

fn reachable_from<'a>(
    start: &'a [String],
    imports: &BTreeMap<&'a [String], BTreeSet<&'a [String]>>,
) -> BTreeSet<&'a [String]> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for target in &imports[module] {
            if reached.insert(*target) {
                open.push(target);
            }
        }
    }
    reached
}
