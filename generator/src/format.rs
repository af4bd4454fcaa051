//! The text of rendered files. Generated Rust is laid out by prettyplease, with blank lines between
//! items, where it puts none: rustfmt is a program that may be missing.

mod file;
mod json;
pub mod yaml;

use json::JsonCalls;

use crate::render::{Document, FileOwner, RenderedFile};
use crate::rust::{RustModule, WrittenAttributes};

pub use self::file::{FileContent, FormattedFile};

/// The members of an `impl` or a trait that have no blank lines between them.
const ONE_LINERS: [&str; 2] = ["const ", "type "];

/// The indentation of a member of an item.
const INDENT: &str = "    ";

/// The text of a file.
#[must_use]
pub fn file(rendered: RenderedFile<'_>) -> FormattedFile {
    let text = text(rendered.document);
    FormattedFile {
        path: rendered.path,
        content: match rendered.owner {
            FileOwner::Generated => FileContent::Generated(text),
            FileOwner::Vendored => FileContent::Vendored(text),
            FileOwner::Scaffold => FileContent::Scaffold(text),
            FileOwner::Splice { before } => FileContent::Splice {
                before: before.into_owned(),
                after: text,
            },
        },
    }
}

/// The text of the content of a file.
#[must_use]
pub fn text(document: Document<'_>) -> String {
    match document {
        Document::Rust { banner, module } => banner + &rust(module),
        Document::Yaml(documents) => yaml::documents(&documents),
        Document::Chart { banner, documents } => yaml::chart_template(banner, &documents),
        Document::Json(value) => format!("{value:#}\n"),
        Document::Template(template) => {
            let text = template.dyn_render();
            let mut text = text.expect("writing to a string cannot fail");
            text.truncate(text.trim_end().len());
            text.push('\n');
            text
        }
        Document::Text(text) => text.into_owned(),
    }
}

/// The text of a module.
pub(crate) fn rust(module: RustModule) -> String {
    let (file, attributes) = module.into_syntax();
    items(file, &attributes)
}

/// A module, with blank lines between its items.
fn items(file: syn::File, attributes: &WrittenAttributes) -> String {
    let head = unparse(file.attrs, Vec::new());
    let mut text = spaced_attributes(&head);
    let mut previous = None;
    for item in file.items {
        let group = ItemGroup::of(&item);
        let continues = previous == Some(group) && group != ItemGroup::Other;
        if !text.is_empty() && !continues {
            text.push('\n');
        }
        text.push_str(&self::item(item, attributes));
        previous = Some(group);
    }
    text
}

/// Items that stay together without blank lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemGroup {
    Module,
    ImportFromStd,
    Import,
    Reexport,
    Other,
}

// === impl ItemGroup ===

impl ItemGroup {
    fn of(item: &syn::Item) -> Self {
        match item {
            syn::Item::Mod(module) if module.content.is_none() => Self::Module,
            syn::Item::Use(import) if matches!(import.vis, syn::Visibility::Public(_)) => {
                Self::Reexport
            }
            syn::Item::Use(import) => match &import.tree {
                syn::UseTree::Path(path) if path.ident == "std" => Self::ImportFromStd,
                _ => Self::Import,
            },
            _ => Self::Other,
        }
    }
}

fn item(item: syn::Item, attributes: &WrittenAttributes) -> String {
    match item {
        syn::Item::Mod(module) => self::module(module, attributes),
        syn::Item::Struct(_) | syn::Item::Enum(_) => {
            attributes.insert(&unparse(Vec::new(), vec![item]))
        }
        syn::Item::Impl(_) | syn::Item::Trait(_) => with_blank_lines(&code(item)),
        syn::Item::Fn(_) => code(item),
        item => unparse(Vec::new(), vec![item]),
    }
}

/// An item with expressions.
fn code(mut item: syn::Item) -> String {
    let json = JsonCalls::take(&mut item);
    json.print(unparse(Vec::new(), vec![item]))
}

/// A module, whose items have blank lines between them as well.
fn module(mut module: syn::ItemMod, attributes: &WrittenAttributes) -> String {
    let Some((_, items)) = module.content.take() else {
        return unparse(Vec::new(), vec![syn::Item::Mod(module)]);
    };
    let is_inner = |attr: &syn::Attribute| matches!(attr.style, syn::AttrStyle::Inner(_));
    let (inner, outer) = std::mem::take(&mut module.attrs)
        .into_iter()
        .partition(is_inner);
    module.attrs = outer;
    let body = syn::File {
        shebang: None,
        frontmatter: None,
        attrs: inner,
        items,
    };
    let body = self::items(body, attributes);
    module.semi = Some(syn::token::Semi::default());
    let declaration = unparse(Vec::new(), vec![syn::Item::Mod(module)]);
    let declaration = declaration.trim_end().trim_end_matches(';').to_owned();
    format!("{declaration} {{\n{}}}\n", indented(&body))
}

fn indented(text: &str) -> String {
    let mut indented = String::with_capacity(text.len() + text.len() / 8);
    for line in text.lines() {
        if !line.is_empty() {
            indented.push_str(INDENT);
            indented.push_str(line);
        }
        indented.push('\n');
    }
    indented
}

fn unparse(attrs: Vec<syn::Attribute>, items: Vec<syn::Item>) -> String {
    prettyplease::unparse(&syn::File {
        shebang: None,
        frontmatter: None,
        attrs,
        items,
    })
}

/// A blank line between the doc comment of a module and its attributes.
fn spaced_attributes(head: &str) -> String {
    head.replacen("\n#![", "\n\n#![", 1)
}

/// The text of an `impl` or a trait, with blank lines between its members.
fn with_blank_lines(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + text.len() / 16);
    // Whether the member before was on one line, if it has ended.
    let mut ended: Option<bool> = None;
    let mut is_one_line = false;
    let mut is_inside = false;
    for line in text.lines() {
        let member = line.strip_prefix(INDENT).filter(|it| !it.starts_with(' '));
        if let Some(member) = member {
            if !is_inside {
                is_one_line = ONE_LINERS.iter().any(|start| member.starts_with(start));
                if ended.is_some_and(|before| !(before && is_one_line)) {
                    spaced.push('\n');
                }
                is_inside = true;
            }
            if member.ends_with(['}', ';']) {
                ended = Some(is_one_line);
                is_inside = false;
            }
        }
        spaced.push_str(line);
        spaced.push('\n');
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_separate_items() {
        let text = "//! Doc.\n#![allow(x)] pub mod a; pub mod b; use std::c::D; use e::F;
            /// Doc.
            pub trait T { const A: u8; const B: u8; /// One.
            fn one(&self); /// Two.
            fn two(&self); }
            const _: () = (); impl T for D { fn one(&self) { let x = 1; } fn two(&self) where Self: Sized { } }
            pub mod c { //! Doc.
            use std::c::D; struct E; }";
        let file = syn::parse_file(text).expect("valid");
        insta::assert_snapshot!(items(file, &WrittenAttributes::default()), @r"
        //! Doc.

        #![allow(x)]

        pub mod a;
        pub mod b;

        use std::c::D;

        use e::F;

        /// Doc.
        pub trait T {
            const A: u8;
            const B: u8;

            /// One.
            fn one(&self);

            /// Two.
            fn two(&self);
        }

        const _: () = ();

        impl T for D {
            fn one(&self) {
                let x = 1;
            }

            fn two(&self)
            where
                Self: Sized,
            {}
        }

        pub mod c {
            //! Doc.

            use std::c::D;

            struct E;
        }
        ");
    }
}
