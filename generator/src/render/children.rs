//! The type that stands for the children of a kind, and what the runtime knows about each of them.

use syn::{Expr, parse_quote};

use super::expression::{call, call_with_types, text};
use super::resource_spec::resource_spec;
use crate::load::manifest::ChildUpdate;
use crate::model::child::{ChildDeclaration, RelatedResource};
use crate::model::common_modules::GENERATED;
use crate::model::operator::HandledKind;
use crate::rust::{RustItem, RustPath, ident};

/// The path of an item of the module of a kind.
pub(super) fn in_module(kind: &HandledKind, name: &str) -> RustPath {
    RustPath::this_crate(&[GENERATED, &kind.module, name])
}

/// The marker, the alias of its context, and an `impl` for each child.
pub(super) fn items(kind: &HandledKind) -> Vec<RustItem> {
    let Some(name) = kind.children_type() else {
        return Vec::new();
    };
    let (marker, alias) = (ident(&name), ident(&kind.reconcile_context()));
    let object = kind.object_path();
    let marker_doc = format!(
        " Stands for the kinds that objects of {} own.",
        kind.type_name
    );
    let alias_doc = format!(
        " The context of a handler that reconciles {}.",
        kind.type_name
    );
    let own = [
        parse_quote! {
            #[doc = #marker_doc]
            #[derive(Debug)]
            pub enum #marker {}
        },
        parse_quote! {
            #[doc = #alias_doc]
            pub type #alias = ::kopf_runtime::ReconcileContext<#object, #marker>;
        },
    ];
    let has_reconcile = kind.reconciles();
    let own = own.into_iter().take(if has_reconcile { 2 } else { 1 });
    let impls = kind.children.iter().map(|child| {
        let (object, options) = (&child.related.object, options(child));
        parse_quote! {
            impl ::kopf_runtime::ChildOf<#marker> for #object {
                const OPTIONS: ::kopf_runtime::ChildOptions = #options;
            }
        }
    });
    own.chain(impls).map(RustItem::code).collect()
}

/// The options of a child, as far as they differ from the default.
fn options(child: &ChildDeclaration) -> Expr {
    let update = match child.update {
        ChildUpdate::InPlace => None,
        ChildUpdate::Recreate => Some("kopf_runtime::UpdateStrategy::Recreate"),
        ChildUpdate::OnDelete => Some("kopf_runtime::UpdateStrategy::OnDelete"),
    };
    let order = child.one_at_a_time;
    let settings = [
        ("update", update),
        (
            "pruning",
            (!child.prune).then_some("kopf_runtime::Pruning::Keep"),
        ),
        (
            "order",
            order.then_some("kopf_runtime::UpdateOrder::OneAtATime"),
        ),
        (
            "contents",
            child
                .bodies
                .then_some("kopf_runtime::ChildContents::Bodies"),
        ),
    ];
    let new: Expr = parse_quote!(::kopf_runtime::ChildOptions::new());
    settings.into_iter().fold(new, |options, (method, value)| {
        let Some(value) = value else { return options };
        let value = RustPath::external(value);
        call(options, method, [parse_quote!(#value)])
    })
}

/// Registers the children of a kind and what its objects use.
pub(super) fn register(kind: &HandledKind, chain: Expr) -> Expr {
    let marker = kind.children_type();
    let chain = kind.children.iter().fold(chain, |chain, child| {
        let marker = marker.iter().map(|name| in_module(kind, name));
        let types = marker.chain([child.related.object.clone()]);
        call_with_types(chain, "child", types, [spec(&child.related)])
    });
    kind.uses.iter().fold(chain, |chain, used| {
        let by = text(&used.by);
        let mut by: Expr = parse_quote!(::kopf_runtime::UsedBy::new(#by));
        if let Some(namespace) = &used.namespace {
            by = call(by, "namespace", [text(namespace)]);
        }
        let types = [used.related.object.clone()];
        call_with_types(chain, "uses", types, [spec(&used.related), by])
    })
}

fn spec(related: &RelatedResource) -> Expr {
    resource_spec(
        [
            &related.group,
            &related.version,
            &related.kind,
            &related.plural,
        ],
        related.scope,
        related.status,
    )
}
