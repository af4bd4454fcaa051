//! Between our trees and those of `syn`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Token;
use syn::punctuated::Punctuated;

use super::path::{PathRoot, RustPath};
use super::rust_type::{RustType, TypeArgument};
use super::scope::WrittenPath;

/// The identifier of a name that is known to be one, with or without `r#`.
#[must_use]
pub fn ident(name: &str) -> Ident {
    match name.strip_prefix("r#") {
        Some(keyword) => Ident::new_raw(keyword, Span::call_site()),
        None => Ident::new(name, Span::call_site()),
    }
}

/// Attributes with the lines of a doc comment.
#[must_use]
pub fn documented(lines: &[String]) -> Vec<syn::Attribute> {
    lines
        .iter()
        .map(|line| doc(line, syn::AttrStyle::Outer))
        .collect()
}

/// One line of a doc comment, without slashes.
pub(super) fn doc(line: &str, style: syn::AttrStyle) -> syn::Attribute {
    let text = if line.is_empty() {
        String::new()
    } else {
        format!(" {line}")
    };
    let literal = syn::Lit::Str(syn::LitStr::new(&text, Span::call_site()));
    syn::Attribute {
        pound_token: <Token![#]>::default(),
        style,
        bracket_token: syn::token::Bracket::default(),
        meta: syn::Meta::NameValue(syn::MetaNameValue {
            path: ident("doc").into(),
            eq_token: <Token![=]>::default(),
            value: syn::Expr::Lit(syn::ExprLit {
                attrs: Vec::new(),
                lit: literal,
            }),
        }),
    }
}

/// A short item of known syntax.
pub(super) fn item(tokens: TokenStream) -> syn::Item {
    syn::parse2(tokens).expect("it is built from identifiers")
}

/// The syntax tree of a path.
pub(super) fn path(written: &WrittenPath) -> syn::Path {
    let mut segments = Punctuated::new();
    for name in &written.names {
        segments.push(syn::PathSegment::from(ident(name)));
    }
    syn::Path {
        leading_colon: written.leading.then(<Token![::]>::default),
        segments,
    }
}

impl ToTokens for RustPath {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let names = self.names().iter().map(|name| ident(name));
        tokens.extend(match self.root() {
            PathRoot::External => quote!(#(::#names)*),
            PathRoot::ThisCrate => quote!(crate #(::#names)*),
            PathRoot::Super(0) => quote!(self #(::#names)*),
            PathRoot::Super(levels) => {
                let up = (0..levels).map(|_| <Token![super]>::default());
                quote!(#(#up::)* #(#names)::*)
            }
            PathRoot::Local => quote!(#(#names)::*),
        });
    }
}

impl ToTokens for RustType {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Self::Path(path, arguments) if arguments.is_empty() => quote!(#path),
            Self::Path(path, arguments) => quote!(#path<#(#arguments),*>),
            Self::Tuple(items) => quote!((#(#items,)*)),
            Self::Array(item, length) => {
                let length = proc_macro2::Literal::u64_unsuffixed(*length);
                quote!([#item; #length])
            }
        });
    }
}

impl ToTokens for TypeArgument {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Type(ty) => ty.to_tokens(tokens),
            Self::Lifetime(name) => {
                let name = format!("'{name}");
                syn::Lifetime::new(&name, Span::call_site()).to_tokens(tokens);
            }
        }
    }
}
