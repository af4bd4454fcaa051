//! Lays out `json!`, whose tokens prettyplease would print as those of any macro.
//!
//! A name of the same width stands for each of them until the lines are broken.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::Token;
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};

/// The start of the names that stand for calls.
const NAME: &str = "__json_";

/// The widest value on one line.
const WIDTH: usize = 60;

/// The calls of `json!` in some items, in the order in which they are printed.
#[derive(Default)]
pub(super) struct JsonCalls {
    calls: Vec<JsonCall>,
}

struct JsonCall {
    /// The name that stands for it.
    name: String,
    /// The path of the macro.
    path: String,
    value: TokenStream,
}

/// Looks for calls of `json!`, and for texts that resemble the names that would stand for them.
#[derive(Default)]
struct TextCheck {
    has_call: bool,
    has_name: bool,
}

// === impl TextCheck ===

impl Visit<'_> for TextCheck {
    fn visit_macro(&mut self, node: &syn::Macro) {
        let text = node.to_token_stream().to_string();
        self.has_call |= text.contains("json");
        self.has_name |= text.contains(NAME);
    }

    fn visit_lit_str(&mut self, node: &syn::LitStr) {
        self.has_name |= node.value().contains(NAME);
    }
}

// === impl JsonCalls ===

impl JsonCalls {
    /// Takes the calls out of an item; leaves them there if its texts could be taken for them.
    pub(super) fn take(item: &mut syn::Item) -> Self {
        let mut check = TextCheck::default();
        check.visit_item(item);
        let mut calls = Self::default();
        if check.has_call && !check.has_name {
            calls.visit_item_mut(item);
        }
        calls
    }

    /// Puts the calls into the text, at their names.
    pub(super) fn print(self, mut text: String) -> String {
        for call in self.calls {
            let Some(start) = text.find(&call.name) else {
                continue;
            };
            let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
            let indent = text[line..].len() - text[line..].trim_start().len();
            text.replace_range(start..start + call.name.len(), &call.text(indent));
        }
        text
    }
}

impl VisitMut for JsonCalls {
    fn visit_expr_mut(&mut self, node: &mut syn::Expr) {
        let syn::Expr::Macro(call) = node else {
            visit_mut::visit_expr_mut(self, node);
            return;
        };
        let Some(name) = call.mac.path.segments.last().map(|it| &it.ident) else {
            return;
        };
        if name == "json" {
            let path = call.mac.path.to_token_stream().to_string().replace(' ', "");
            let call = JsonCall::new(self.calls.len(), path, call.mac.tokens.clone());
            let stand_in = Ident::new(&call.name, Span::call_site());
            self.calls.push(call);
            *node = syn::parse_quote!(#stand_in);
        } else if name == "vec" {
            let items = Punctuated::<syn::Expr, Token![,]>::parse_terminated;
            if let Ok(mut items) = call.mac.parse_body_with(items) {
                items.iter_mut().for_each(|item| self.visit_expr_mut(item));
                call.mac.tokens = items.into_token_stream();
            }
        }
    }
}

// === impl JsonCall ===

impl JsonCall {
    fn new(number: usize, path: String, value: TokenStream) -> Self {
        let width = path.len() + "!()".len() + one_line(value.clone()).chars().count();
        let number = format!("{NAME}{number}_");
        let name = format!("{number:_<width$}");
        Self { name, path, value }
    }

    fn text(&self, indent: usize) -> String {
        format!("{}!({})", self.path, broken(self.value.clone(), indent))
    }
}

/// The tokens of a JSON value on one line.
fn one_line(value: TokenStream) -> String {
    let tokens = value.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let inside = one_line(group.stream());
            match group.delimiter() {
                Delimiter::Brace => format!("{{{inside}}}"),
                _ => format!("[{inside}]"),
            }
        }
        TokenTree::Punct(punct) if punct.as_char() != '-' => format!("{punct} "),
        token => token.to_string(),
    });
    tokens.collect()
}

/// The tokens of a JSON value, with one entry per line where it is too wide for one line.
fn broken(value: TokenStream, indent: usize) -> String {
    let is_wide = one_line(value.clone()).chars().count() > WIDTH;
    let tokens = value.into_iter().map(|token| match token {
        TokenTree::Group(group) if is_wide => {
            let inner = " ".repeat(indent + 4);
            let entries = entries(group.stream()).map(|it| broken(it, indent + 4));
            let entries = entries.collect::<Vec<_>>().join(&format!(",\n{inner}"));
            let end = " ".repeat(indent);
            match group.delimiter() {
                Delimiter::Brace => format!("{{\n{inner}{entries}\n{end}}}"),
                _ => format!("[\n{inner}{entries}\n{end}]"),
            }
        }
        token => one_line(token.into()),
    });
    tokens.collect()
}

/// The tokens between the commas.
fn entries(list: TokenStream) -> impl Iterator<Item = TokenStream> {
    let tokens: Vec<TokenTree> = list.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ',');
    let entries = tokens
        .split(is_comma)
        .map(|it| it.iter().cloned().collect());
    entries.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::rust::WrittenAttributes;

    fn print(item: proc_macro2::TokenStream) -> String {
        let file = syn::parse2(item).expect("valid");
        super::super::items(file, &WrittenAttributes::default())
    }

    #[test]
    fn json_is_written_as_people_write_it() {
        let text = print(quote! {
            fn f() {
                g(serde_json::json!({"a": [1, null, -2.5]}), vec![json!({}), json!("a, b: c")]);
            }
        });
        insta::assert_snapshot!(text, @r#"
        fn f() {
            g(serde_json::json!({"a": [1, null, -2.5]}), vec![json!({}), json!("a, b: c")]);
        }
        "#);
    }

    #[test]
    fn texts_are_not_taken_for_calls() {
        let text = print(quote! {
            fn f() {
                g("__json_0_________", json!({}));
            }
        });
        assert!(text.contains("\"__json_0_________\", json!("), "{text}");
    }

    #[test]
    fn wide_json_is_broken_at_its_commas() {
        let text = print(quote! {
            fn f() {
                A {
                    any: serde_json::json!({
                        "first": ["one", "two"],
                        "second": {"third": "a text of some length", "fourth": "another text of some length"}
                    }),
                }
            }
        });
        insta::assert_snapshot!(text, @r#"
        fn f() {
            A {
                any: serde_json::json!({
                    "first": ["one", "two"],
                    "second": {
                        "third": "a text of some length",
                        "fourth": "another text of some length"
                    }
                }),
            }
        }
        "#);
    }
}
