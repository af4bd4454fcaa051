//! The doc comments and attributes of a module, for which short attributes stand in its syntax tree.
//!
//! As tokens and string literals, they would be escaped, and unescaped again when they are printed.

use proc_macro2::Span;
use syn::Token;

/// The start of the attributes that stand for others.
const NAME: &str = "attributes_";

/// The widest attribute that prettyplease prints on one line, wherever it is.
const WIDTH: usize = 80;

/// The doc comments and attributes of a module and of the modules inside of it.
#[derive(Debug, Default)]
pub struct WrittenAttributes {
    list: Vec<WrittenLines>,
}

/// What is written before an item, a field or a variant.
#[derive(Debug)]
struct WrittenLines {
    /// The lines of the doc comment, without slashes.
    docs: Vec<String>,
    /// The attributes, one per line.
    attributes: Vec<String>,
}

// === impl WrittenAttributes ===

impl WrittenAttributes {
    /// Keeps the lines of a doc comment and the texts of attributes; returns the attributes that
    /// stand for them. One that may need several lines is parsed instead, with those after it.
    pub(super) fn add(
        &mut self,
        docs: Vec<String>,
        mut attributes: Vec<String>,
    ) -> Vec<syn::Attribute> {
        let narrow = attributes.iter().take_while(|text| text.len() <= WIDTH);
        let wide = attributes.split_off(narrow.count());
        let mut syntax = Vec::new();
        if !docs.is_empty() || !attributes.is_empty() {
            let name = format!("{NAME}{}", self.list.len());
            self.list.push(WrittenLines { docs, attributes });
            syntax.push(syn::Attribute {
                pound_token: <Token![#]>::default(),
                style: syn::AttrStyle::Outer,
                bracket_token: syn::token::Bracket::default(),
                meta: syn::Meta::Path(syn::Ident::new(&name, Span::call_site()).into()),
            });
        }
        for text in wide {
            let parsed = syn::parse::Parser::parse_str(syn::Attribute::parse_outer, &text);
            syntax.extend(parsed.expect("it is built from identifiers and literals"));
        }
        syntax
    }

    /// The text of a struct or an enum with its doc comments and attributes.
    #[must_use]
    pub fn insert(&self, text: &str) -> String {
        let mut complete = String::with_capacity(text.len() * 3);
        for line in text.lines() {
            let attribute = line.trim_start();
            match self.find(attribute) {
                Some(lines) => {
                    let indent = &line[..line.len() - attribute.len()];
                    for doc in &lines.docs {
                        let space = if doc.is_empty() { "" } else { " " };
                        complete.extend([indent, "///", space, doc, "\n"]);
                    }
                    for attribute in &lines.attributes {
                        complete.extend([indent, attribute, "\n"]);
                    }
                }
                None => complete.extend([line, "\n"]),
            }
        }
        complete
    }

    fn find(&self, attribute: &str) -> Option<&WrittenLines> {
        let name = attribute.strip_prefix("#[")?.strip_suffix(']')?;
        let number: usize = name.strip_prefix(NAME)?.parse().ok()?;
        self.list.get(number)
    }
}
