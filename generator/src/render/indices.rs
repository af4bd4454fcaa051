//! `src/generated/indices.rs`: one type for each index.

use syn::parse_quote;

use super::layout::wrap;
use crate::model::common_modules::CommonModule;
use crate::model::index::Index;
use crate::model::operator::Operator;
use crate::model::phrases::object;
use crate::rust::{RustItem, RustModule, documented, ident};

/// The width of a doc comment at the top level.
const DOC_WIDTH: usize = 96;

/// The module of all indices of `operator`.
pub(super) fn module(operator: &Operator) -> RustModule {
    let mut items = Vec::new();
    for index in operator.indices() {
        let docs = documented(&wrap(&sentence(operator, index), DOC_WIDTH));
        let type_name = ident(&index.type_name);
        let (keys, values) = (&index.keys.resolved, &index.values.resolved);
        let name = &index.name;
        items.push(RustItem::code(parse_quote! {
            #(#docs)*
            #[derive(Clone, Copy, Debug)]
            pub struct #type_name;
        }));
        items.push(RustItem::code(parse_quote! {
            impl ::kopf_runtime::Index for #type_name {
                type Key = #keys;
                type Value = #values;
                const NAME: &'static str = #name;
            }
        }));
    }
    RustModule {
        docs: vec![
            "The indices that `kopf.yaml` declares, with the types of their keys and values."
                .to_owned(),
        ],
        location: CommonModule::Indices.location(),
        items,
        ..RustModule::default()
    }
}

fn sentence(operator: &Operator, index: &Index) -> String {
    let kinds: Vec<String> = operator
        .kinds
        .iter()
        .filter(|kind| kind.indices().any(|it| it.name == index.name))
        .map(object)
        .collect();
    format!(
        "The index `{}` of {}: keys are `{}`, values are `{}`.",
        index.name,
        kinds.join(" or "),
        index.keys.written,
        index.values.written
    )
}
