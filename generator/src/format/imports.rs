//! Imports the names that a module writes with their paths, unless the module itself declares such a
//! name. So no name of the input can take the place of another one.

use std::collections::{BTreeMap, BTreeSet};

use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};

/// The crates from which names are imported, in the order of their imports.
const CRATES: [&str; 2] = ["std", "kopf_runtime"];

/// Names of `std` that need no import.
const PRELUDE: &[&str] = &["Future"];

/// Replaces paths by imported names.
pub(super) fn shorten(file: &mut syn::File) {
    let mut shortening = Shortening {
        declared: file.items.iter().flat_map(declared_names).collect(),
        imported: BTreeMap::new(),
    };
    shortening.visit_file_mut(file);
    let imports = shortening.into_items();
    file.items.splice(0..0, imports);
}

struct Shortening {
    /// The names that the module declares or imports itself.
    declared: BTreeSet<String>,
    /// The path of each imported name, without the name.
    imported: BTreeMap<String, Vec<String>>,
}

impl Shortening {
    /// The number of leading segments that an import replaces.
    fn replaced(&mut self, path: &syn::Path) -> Option<usize> {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        let first = segments.first()?;
        if path.leading_colon.is_some() || !CRATES.contains(&first.as_str()) {
            return None;
        }
        let is_type = |name: &String| name.starts_with(|c: char| c.is_uppercase());
        // A function is called with its module.
        let at = segments
            .iter()
            .position(is_type)
            .unwrap_or(segments.len().checked_sub(2)?);
        let (module, name) = (segments.get(..at)?, segments.get(at)?);
        if at == 0 || self.declared.contains(name) {
            return None;
        }
        if PRELUDE.contains(&name.as_str()) {
            return Some(at);
        }
        let owner = self.imported.entry(name.clone());
        (owner.or_insert_with(|| module.to_vec()) == module).then_some(at)
    }

    fn into_items(self) -> Vec<syn::Item> {
        let mut modules: BTreeMap<(usize, Vec<String>), Vec<String>> = BTreeMap::new();
        for (name, module) in self.imported {
            let order = CRATES
                .iter()
                .position(|it| module.first().is_some_and(|m| m == it));
            let key = (order.unwrap_or_default(), module);
            modules.entry(key).or_default().push(name);
        }
        let items = modules.into_iter().filter_map(|((_, module), names)| {
            let module = module.join("::");
            let text = match names.as_slice() {
                [name] => format!("use {module}::{name};"),
                names => format!("use {module}::{{{}}};", names.join(", ")),
            };
            syn::parse_str(&text).ok()
        });
        items.collect()
    }
}

impl VisitMut for Shortening {
    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        if let Some(replaced) = self.replaced(path) {
            let segments = std::mem::take(&mut path.segments);
            path.segments = segments
                .into_iter()
                .skip(replaced)
                .collect::<Punctuated<_, _>>();
        }
    }

    fn visit_item_use_mut(&mut self, _: &mut syn::ItemUse) {
        // An import has its path already.
    }
}

/// The names that an item adds to its module, in the namespace of types.
fn declared_names(item: &syn::Item) -> Vec<String> {
    match item {
        syn::Item::Enum(item) => vec![item.ident.to_string()],
        syn::Item::Mod(item) => vec![item.ident.to_string()],
        syn::Item::Struct(item) => vec![item.ident.to_string()],
        syn::Item::Trait(item) => vec![item.ident.to_string()],
        syn::Item::Type(item) => vec![item.ident.to_string()],
        syn::Item::Use(item) => {
            let mut names = Vec::new();
            collect_imported(&item.tree, &mut names);
            names
        }
        _ => Vec::new(),
    }
}

fn collect_imported(tree: &syn::UseTree, names: &mut Vec<String>) {
    match tree {
        syn::UseTree::Path(path) => collect_imported(&path.tree, names),
        syn::UseTree::Name(name) => names.push(name.ident.to_string()),
        syn::UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        syn::UseTree::Glob(_) => {}
        syn::UseTree::Group(group) => {
            let trees = group.items.iter();
            trees.for_each(|tree| collect_imported(tree, names));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rust_with_imports;

    #[test]
    fn names_are_imported_unless_the_module_has_them() {
        let text = "pub use super::types::Arc; pub struct Memo;
            fn f(a: &std::sync::Arc<u8>, d: std::time::Duration) -> impl std::future::Future<Output = kopf_runtime::Memo<Arc>> {
                kopf_runtime::predicate::value(kopf_runtime::On::create(), \"kopf_runtime::Text\")
            }";
        insta::assert_snapshot!(rust_with_imports(text).expect("valid"), @r#"
        // @generated by kopf-gen. Do not edit: change kopf.yaml or a CRD, then run `kopf-gen generate`.
        use std::time::Duration;

        use kopf_runtime::{On, predicate};
        pub use super::types::Arc;

        pub struct Memo;

        fn f(
            a: &std::sync::Arc<u8>,
            d: Duration,
        ) -> impl Future<Output = kopf_runtime::Memo<Arc>> {
            predicate::value(On::create(), "kopf_runtime::Text")
        }
        "#);
    }
}
