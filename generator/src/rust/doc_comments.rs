//! The doc comments of a module, for which short attributes stand in its syntax tree.
//!
//! As string literals, they would be escaped, and unescaped again when they are printed.

use proc_macro2::Span;
use syn::Token;

/// The start of the attributes.
const NAME: &str = "doc_";

/// The doc comments of a module and of the modules inside of it.
#[derive(Debug, Default)]
pub struct DocComments {
    list: Vec<Vec<String>>,
}

// === impl DocComments ===

impl DocComments {
    /// Keeps the lines of a doc comment; returns the attribute that stands for them, if any.
    pub(super) fn add(&mut self, lines: Vec<String>) -> Option<syn::Attribute> {
        if lines.is_empty() {
            return None;
        }
        let name = format!("{NAME}{}", self.list.len());
        self.list.push(lines);
        Some(syn::Attribute {
            pound_token: <Token![#]>::default(),
            style: syn::AttrStyle::Outer,
            bracket_token: syn::token::Bracket::default(),
            meta: syn::Meta::Path(syn::Ident::new(&name, Span::call_site()).into()),
        })
    }

    /// The text of a struct or an enum with its doc comments.
    #[must_use]
    pub fn insert(&self, text: &str) -> String {
        let mut complete = String::with_capacity(text.len() * 3);
        for line in text.lines() {
            let attribute = line.trim_start();
            match self.find(attribute) {
                Some(lines) => {
                    let indent = &line[..line.len() - attribute.len()];
                    for doc in lines {
                        let space = if doc.is_empty() { "" } else { " " };
                        complete.extend([indent, "///", space, doc, "\n"]);
                    }
                }
                None => complete.extend([line, "\n"]),
            }
        }
        complete
    }

    fn find(&self, attribute: &str) -> Option<&[String]> {
        let name = attribute.strip_prefix("#[")?.strip_suffix(']')?;
        let number: usize = name.strip_prefix(NAME)?.parse().ok()?;
        self.list.get(number).map(Vec::as_slice)
    }
}
