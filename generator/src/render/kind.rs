//! `src/generated/<kind>.rs`: the trait of a kind, and the registration of its handlers.

use kopf_core::selection::Selector;
use syn::{Expr, parse_quote};

use super::exports::exports;
use super::expression::{call, text};
use super::method::{TraitMethod, methods};
use super::resource_spec::resource_spec;
use super::{children, object_traits, registration};
use crate::load::manifest::Tracking;
use crate::model::common_modules::GENERATED;
use crate::model::operator::HandledKind;
use crate::rust::{PathRoot, RustItem, RustModule, RustPath, documented, ident};

/// The method of a trait that returns the memo of an object, unless a handler has that name.
const MEMO_METHOD: &str = "memo";

/// The module of one kind.
pub(super) fn module(kind: &HandledKind) -> RustModule {
    let methods = methods(kind);
    let exported = exports(kind, &methods);
    let location = vec![GENERATED.to_owned(), kind.module.clone()];
    let is_own =
        |path: &RustPath| path.root() == PathRoot::ThisCrate && path.names().starts_with(&location);
    let reexports = exported
        .iter()
        .filter(|(path, _)| !is_own(path))
        .map(|(path, name)| RustItem::Reexport(path.clone(), ident(name)));
    RustModule {
        docs: vec![summary(kind)],
        items: reexports
            .chain(children::items(kind))
            .chain([handlers_trait(kind, &methods), resource(kind)])
            .chain(object_traits::impls(kind))
            .collect(),
        location: location.clone(),
        ..RustModule::default()
    }
}

fn handlers_trait(kind: &HandledKind, methods: &[TraitMethod]) -> RustItem {
    let (title, noun) = match kind.selector() {
        Some(_) => (
            format!("`{}`", kind.kind),
            format!("object of `{}`", kind.kind),
        ),
        None => (kind.type_name.clone(), kind.type_name.clone()),
    };
    let doc = format!(" The handlers of {title} that `kopf.yaml` declares.");
    let memo = kind.memo.as_ref().map(|_| -> syn::TraitItem {
        let doc = format!(
            " The in-memory state of each {noun} while the operator runs; it starts as the default."
        );
        let object = kind.object_path();
        parse_quote! {
            #[doc = #doc]
            type Memo: ::kopf_runtime::Memo<#object>;
        }
    });
    let is_free = methods.iter().all(|method| method.name != MEMO_METHOD);
    let memo_method = kind
        .memo
        .as_ref()
        .filter(|_| is_free)
        .map(|_| -> syn::TraitItem {
            let doc = format!(" The memo of the {noun} that a context is about.");
            let (name, object) = (ident(MEMO_METHOD), kind.object_path());
            parse_quote! {
                #[doc = #doc]
                fn #name<'a>(
                    &self,
                    cx: &'a impl ::kopf_runtime::MemoContext<#object>,
                ) -> &'a Self::Memo {
                    cx.memo()
                }
            }
        });
    let name = ident(&kind.handlers_trait());
    let methods = methods.iter().map(declaration);
    RustItem::code(parse_quote! {
        #[doc = #doc]
        pub trait #name: ::std::marker::Send + ::std::marker::Sync + 'static {
            #memo
            #(#methods)*
            #memo_method
        }
    })
}

/// The declaration of a method in a trait.
pub(super) fn declaration(method: &TraitMethod) -> syn::TraitItem {
    let docs = documented(&method.doc);
    let name = ident(&method.name);
    let (arguments, result) = method.shape.parts();
    let (names, types): (Vec<_>, Vec<_>) = arguments
        .into_iter()
        .map(|(name, ty)| (ident(name), ty))
        .unzip();
    if method.shape.builds_state() {
        return parse_quote! {
            #(#docs)*
            fn #name(#(#names: #types),*) -> #result;
        };
    }
    parse_quote! {
        #(#docs)*
        fn #name(&self #(, #names: #types)*) -> #result;
    }
}

/// The function that registers the methods.
fn resource(kind: &HandledKind) -> RustItem {
    // A kind can have any name.
    let state = ident(if kind.type_name == "S" { "T" } else { "S" });
    let object = kind.object_path();
    let (doc, declared, start): (_, syn::Stmt, Expr) = match kind.selector() {
        Some(selector) => {
            let selector = self::selector(selector);
            (
                " The selector, and the registration of the methods.".to_owned(),
                parse_quote!(let selector = #selector;),
                parse_quote!(::kopf_runtime::Resource::<#object, #state>::selected(selector, state)),
            )
        }
        None => {
            let spec = spec(kind);
            (
                format!(
                    " The API resource of {}, and the registration of the methods.",
                    kind.type_name
                ),
                parse_quote!(let spec = #spec;),
                parse_quote!(::kopf_runtime::Resource::<#object, #state>::new(spec, state)),
            )
        }
    };
    let mut chain = start;
    if kind.memo.is_some() {
        chain = parse_quote!(#chain.memo::<#state::Memo>());
    }
    if kind.tracking == Tracking::Always {
        chain = call(chain, "track_always", []);
    }
    chain = children::register(kind, chain);
    let mut setup = Vec::new();
    let handlers = kind.handlers.iter().enumerate();
    let handlers = handlers.map(|(place, handler)| registration::handler(kind, handler, place));
    let webhooks = kind.webhooks.iter().zip(kind.handlers.len()..);
    let webhooks = webhooks.map(|(webhook, place)| registration::webhook(webhook, place));
    for mut registration in handlers.chain(webhooks) {
        setup.extend(registration.take_setup());
        chain = registration.call_on(chain);
    }
    registration::sort_setup(&mut setup);
    let handlers_trait = ident(&kind.handlers_trait());
    let mut function: syn::ItemFn = parse_quote! {
        #[doc = #doc]
        pub(super) fn resource<#state: #handlers_trait>(
            state: &::kopf_runtime::SharedState<#state>,
        ) -> ::kopf_runtime::ResourceHandlers {
            #(#setup)*
            #declared
        }
    };
    let result = syn::Stmt::Expr(call(chain, "build", []), None);
    function.block.stmts.push(result);
    RustItem::code(syn::Item::Fn(function))
}

fn spec(kind: &HandledKind) -> Expr {
    let names = [&kind.group, &kind.version, &kind.kind, &kind.plural];
    resource_spec(names, kind.scope, kind.status)
}

fn selector(selector: &Selector) -> Expr {
    let (function, name) = selector.name().parts();
    let function = ident(function);
    let name = name.into_iter();
    let mut expression: Expr = parse_quote!(::kopf_runtime::Selector::#function(#(#name),*));
    if let Some(group) = selector.group() {
        expression = call(expression, "in_group", [text(group)]);
    }
    if let Some(version) = selector.version() {
        expression = call(expression, "in_version", [text(version)]);
    }
    expression
}

fn summary(kind: &HandledKind) -> String {
    if let Some(selector) = kind.selector() {
        return format!(
            "{} (`select: {selector}`): the handler trait, and the registration of its methods.",
            kind.kind
        );
    }
    format!(
        "{} ({}): the type, the handler trait, and the registration of its methods.",
        kind.kind,
        kind.api_version()
    )
}
