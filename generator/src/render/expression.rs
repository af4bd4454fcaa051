//! Expressions that are built without parsing, because they contain others of any size.

use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::{Expr, Token, parse_quote};

use crate::rust::{RustPath, ident};

/// A string literal.
pub(super) fn text(text: &str) -> Expr {
    Expr::Lit(syn::ExprLit {
        attrs: Vec::new(),
        lit: syn::Lit::Str(syn::LitStr::new(text, Span::call_site())),
    })
}

/// `receiver.method(arguments)`
pub(super) fn call(
    receiver: Expr,
    method: &str,
    arguments: impl IntoIterator<Item = Expr>,
) -> Expr {
    Expr::MethodCall(syn::ExprMethodCall {
        attrs: Vec::new(),
        receiver: Box::new(receiver),
        dot_token: <Token![.]>::default(),
        method: ident(method),
        turbofish: None,
        paren_token: syn::token::Paren::default(),
        args: arguments.into_iter().collect(),
    })
}

/// `receiver.method::<types>(arguments)`
pub(super) fn call_with_types(
    receiver: Expr,
    method: &str,
    types: impl IntoIterator<Item = RustPath>,
    arguments: impl IntoIterator<Item = Expr>,
) -> Expr {
    let mut call = call(receiver, method, arguments);
    let types: Vec<RustPath> = types.into_iter().collect();
    if let Expr::MethodCall(call) = &mut call
        && !types.is_empty()
    {
        call.turbofish = Some(parse_quote!(::<#(#types),*>));
    }
    call
}

/// `path { field: value, ..base }`
pub(super) fn construct(
    path: syn::Path,
    fields: impl IntoIterator<Item = (syn::Ident, Expr)>,
    base: Option<Expr>,
) -> Expr {
    let mut list: Punctuated<syn::FieldValue, Token![,]> = Punctuated::new();
    for (name, expr) in fields {
        list.push(syn::FieldValue {
            attrs: Vec::new(),
            member: syn::Member::Named(name),
            colon_token: Some(<Token![:]>::default()),
            expr,
        });
    }
    if base.is_some() && !list.is_empty() {
        list.push_punct(<Token![,]>::default());
    }
    Expr::Struct(syn::ExprStruct {
        attrs: Vec::new(),
        qself: None,
        path,
        brace_token: syn::token::Brace::default(),
        fields: list,
        dot2_token: base.as_ref().map(|_| <Token![..]>::default()),
        rest: base.map(Box::new),
    })
}
