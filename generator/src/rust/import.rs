//! The declarations of imports and re-exports, in the order of rustfmt.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::path::RustPath;
use super::scope::ImportedItems;
use super::syntax;

/// The place of an import: the standard library first, then by name, and lists of names after
/// single ones.
type ImportOrder<'a> = (bool, Vec<(bool, &'a str)>);

/// The imports of these items, and of these traits for their methods alone.
pub(super) fn imports(items: &ImportedItems, traits: &[RustPath]) -> Vec<syn::Item> {
    let items = items.iter().map(|(module, names)| {
        let list: Vec<Ident> = names.iter().map(|name| syntax::ident(name)).collect();
        let path = module.iter().map(|name| syntax::ident(name));
        match (list.as_slice(), names.first()) {
            ([only], Some(name)) => {
                let names = module.iter().chain([name]);
                (order(names, false), quote!(use #(#path::)* #only;))
            }
            (list, _) => (order(module, true), quote!(use #(#path::)* {#(#list),*};)),
        }
    });
    let traits = traits.iter().map(|path| {
        let names = path.names().iter().map(|name| syntax::ident(name));
        (order(path.names(), false), quote!(use #(#names)::* as _;))
    });
    let mut declarations: Vec<(ImportOrder<'_>, TokenStream)> = items.chain(traits).collect();
    declarations.sort_by(|(one, _), (other, _)| one.cmp(other));
    let tokens = declarations.into_iter().map(|(_, tokens)| tokens);
    tokens.map(syntax::item).collect()
}

fn order<'a>(names: impl IntoIterator<Item = &'a String>, is_list: bool) -> ImportOrder<'a> {
    let names = names.into_iter().map(|name| (false, name.as_str()));
    let names: Vec<_> = names.chain(is_list.then_some((true, ""))).collect();
    let is_std = names.first().is_some_and(|(_, name)| *name == "std");
    (!is_std, names)
}

/// The re-exported names of each module, there and here.
pub(super) type ReexportList = BTreeMap<Vec<String>, BTreeSet<(String, String)>>;

/// `pub use` of names of one module.
pub(super) fn reexport((module, names): (Vec<String>, BTreeSet<(String, String)>)) -> syn::Item {
    let module = module.iter().map(|name| syntax::ident(name));
    let names: Vec<TokenStream> = names
        .iter()
        .map(|(there, here)| (syntax::ident(there), syntax::ident(here)))
        .map(|(there, here)| match there == here {
            true => quote!(#here),
            false => quote!(#there as #here),
        })
        .collect();
    syntax::item(match names.as_slice() {
        [name] => quote!(pub use #(#module::)* #name;),
        names => quote!(pub use #(#module::)* {#(#names),*};),
    })
}
