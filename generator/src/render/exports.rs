//! The names that the module of a kind re-exports for the user's files.

use std::collections::BTreeMap;

use super::method::TraitMethod;
use crate::model::operator::HandledKind;
use crate::rust::{PathRoot, RustPath};

/// The re-exported items: the type of the kind, its indices, the generated types of its children,
/// and those of the fields that its methods take. A name that several of them share belongs to the first.
#[must_use]
pub(super) fn exports(kind: &HandledKind, methods: &[TraitMethod]) -> BTreeMap<RustPath, String> {
    let mut exported: BTreeMap<RustPath, String> = BTreeMap::new();
    let mut add = |path: RustPath, name: &str| {
        let is_taken = exported.values().any(|known| known == name);
        if !is_taken && name != kind.handlers_trait() {
            exported.insert(path, name.to_owned());
        }
    };
    add(kind.object_path(), &kind.type_name);
    for index in kind.indices() {
        add(index.path(), &index.type_name);
    }
    let children = kind.children.iter().map(|child| &child.related.object);
    let own = children.filter(|path| path.root() == PathRoot::ThisCrate);
    for path in own {
        add(path.clone(), path.name());
    }
    for method in methods {
        method.shape.for_each_path(&mut |path| {
            if path.root() == PathRoot::ThisCrate {
                add(path.clone(), path.name());
            }
        });
    }
    exported
}
