//! Adds methods, modules and items to a user's Rust file, and changes nothing else in it.
//!
//! It parses the file and inserts at byte offsets, so comments, line endings and a byte-order mark
//! stay as they are.

mod depth;

use std::ops::Range;

use proc_macro2::{LexError, Span, TokenStream};
use syn::spanned::Spanned as _;

pub(crate) use self::depth::too_deep;
use self::depth::{DEEPEST, LONGEST};

/// A parsed file of the user.
pub struct UserSource<'a> {
    text: &'a str,
    /// The offset of the parsed part: spans do not count a byte-order mark or a `#!` line.
    start: usize,
    file: syn::File,
}

/// An `impl Trait for Type` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraitImpl {
    /// Its functions, in order.
    pub methods: Vec<ImplMethod>,
    /// The names of its associated types.
    pub types: Vec<String>,
    /// The indentation of its last item, if there is one.
    indentation: Option<String>,
    /// The whole block.
    item: Range<usize>,
    /// The bytes between the braces.
    body: Range<usize>,
}

/// A function in an `impl` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImplMethod {
    /// Its name, without `r#`.
    pub name: String,
    /// The byte offset of the name.
    pub offset: usize,
}

/// The names that the `use` items of a file import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedNames {
    /// Each name with the module that it comes from.
    names: Vec<(String, String)>,
    /// The names that stand for another one of their module, with that.
    renamed: Vec<(String, String)>,
    globs: Vec<String>,
}

/// A file that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// The message of the parser.
    pub message: String,
    /// The byte offset of the error.
    pub offset: usize,
}

// === impl UserSource ===

impl<'a> UserSource<'a> {
    /// Parses a whole file.
    pub fn parse(text: &'a str) -> Result<Self, SyntaxError> {
        let start = parsed_part_start(text);
        let failed = |error: syn::Error| SyntaxError {
            message: parser_message(&error),
            offset: start + error.span().byte_range().start,
        };
        let tokens: Result<TokenStream, LexError> = text[start..].parse();
        let tokens = tokens.map_err(|error| failed(error.into()))?;
        if let Some(place) = too_deep(tokens.clone()) {
            let message = format!(
                "more than {DEEPEST} levels of brackets, or more than {LONGEST} tokens in an expression"
            );
            return Err(failed(syn::Error::new(place, message)));
        }
        let file = syn::parse2(tokens).map_err(failed)?;
        Ok(Self { text, start, file })
    }

    /// Every implementation of a trait of this name, also inside inline modules.
    #[must_use]
    pub fn impls_of(&self, trait_name: &str) -> Vec<TraitImpl> {
        let mut found = Vec::new();
        self.collect_impls(&self.file.items, trait_name, &mut found);
        found
    }

    /// The parsed file.
    pub(crate) fn file(&self) -> &syn::File {
        &self.file
    }

    /// Whether the file has `mod name` in any form.
    #[must_use]
    pub fn declares_module(&self, name: &str) -> bool {
        self.modules().any(|module| module.ident == name)
    }

    /// Whether the file declares or imports a type of this name, also inside inline modules.
    #[must_use]
    pub fn declares_type(&self, name: &str) -> bool {
        fn declares(items: &[syn::Item], name: &str) -> bool {
            items.iter().any(|item| match item {
                syn::Item::Enum(item) => item.ident == name,
                syn::Item::Struct(item) => item.ident == name,
                syn::Item::Type(item) => item.ident == name,
                syn::Item::Union(item) => item.ident == name,
                syn::Item::Mod(syn::ItemMod {
                    content: Some((_, items)),
                    ..
                }) => declares(items, name),
                _ => false,
            })
        }
        declares(&self.file.items, name)
    }

    /// The imports at the top of the file.
    #[must_use]
    pub fn imports(&self) -> ImportedNames {
        let mut imports = ImportedNames::default();
        for item in &self.file.items {
            if let syn::Item::Use(item) = item {
                imports.add("", &item.tree);
            }
        }
        imports
    }

    /// The file with more functions at the end of `block`. Stubs have no outer indentation, `\n`
    /// and no final line break.
    #[must_use]
    pub fn with_methods(&self, block: &TraitImpl, stubs: &[String]) -> String {
        let newline = line_break(self.text);
        let outer = indentation_at(self.text, block.item.start);
        let inner = block.indentation.clone().unwrap_or_else(|| {
            let unit = if self.text.contains("\n\t") {
                "\t"
            } else {
                "    "
            };
            format!("{outer}{unit}")
        });
        let mut added = String::new();
        for (number, stub) in stubs.iter().enumerate() {
            if number > 0 || !block.methods.is_empty() || !block.types.is_empty() {
                added.push_str(newline);
            }
            for line in stub.lines() {
                added.push_str(&indented(line, &inner));
                added.push_str(newline);
            }
        }
        let line_start = self.text[..block.body.end]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let before_brace = &self.text[line_start..block.body.end];
        if before_brace.trim().is_empty() && line_start > block.body.start {
            insert(self.text, line_start, &added)
        } else {
            insert(
                self.text,
                block.body.end,
                &format!("{newline}{added}{outer}"),
            )
        }
    }

    /// The file with one more `mod name;`, sorted into those that it has.
    #[must_use]
    pub fn with_module(&self, name: &str) -> String {
        let newline = line_break(self.text);
        let outside = || self.modules().filter(|module| module.content.is_none());
        if let Some(previous) = outside()
            .filter(|module| module.ident.to_string().as_str() < name)
            .last()
        {
            let end = self.bytes(previous.span()).end;
            let rest = self.text[end..].split('\n').next().unwrap_or_default();
            let ends_line = rest.trim().is_empty() || rest.trim_start().starts_with("//");
            let at = if ends_line {
                end + rest.trim_end_matches('\r').len()
            } else {
                end
            };
            return insert(self.text, at, &format!("{newline}mod {name};"));
        }
        if let Some(next) = outside().next() {
            let at = self.bytes(next.span()).start;
            return insert(self.text, at, &format!("mod {name};{newline}"));
        }
        match self.file.attrs.last() {
            Some(attribute) => {
                let at = self.bytes(attribute.span()).end;
                insert(self.text, at, &format!("{newline}{newline}mod {name};"))
            }
            None => insert(
                self.text,
                self.start,
                &format!("mod {name};{newline}{newline}"),
            ),
        }
    }

    fn modules(&self) -> impl Iterator<Item = &syn::ItemMod> {
        self.file.items.iter().filter_map(|item| match item {
            syn::Item::Mod(module) => Some(module),
            _ => None,
        })
    }

    fn collect_impls(&self, items: &[syn::Item], trait_name: &str, found: &mut Vec<TraitImpl>) {
        for item in items {
            match item {
                syn::Item::Impl(item) if implements(item, trait_name) => {
                    found.push(self.trait_impl(item))
                }
                syn::Item::Mod(syn::ItemMod {
                    content: Some((_, items)),
                    ..
                }) => {
                    self.collect_impls(items, trait_name, found);
                }
                _ => {}
            }
        }
    }

    fn trait_impl(&self, item: &syn::ItemImpl) -> TraitImpl {
        let functions: Vec<_> = item
            .items
            .iter()
            .filter_map(|item| match item {
                syn::ImplItem::Fn(function) => Some(function),
                _ => None,
            })
            .collect();
        let methods = functions
            .iter()
            .map(|function| ImplMethod {
                name: syn::ext::IdentExt::unraw(&function.sig.ident).to_string(),
                offset: self.bytes(function.sig.ident.span()).start,
            })
            .collect();
        let types = item.items.iter().filter_map(|item| match item {
            syn::ImplItem::Type(item) => Some(item.ident.to_string()),
            _ => None,
        });
        let indentation = item
            .items
            .last()
            .map(|last| indentation_at(self.text, self.bytes(last.span()).start).to_owned())
            .filter(|indentation| !indentation.is_empty());
        TraitImpl {
            methods,
            types: types.collect(),
            indentation,
            item: self.bytes(item.span()),
            body: self.bytes(item.brace_token.span.open()).end
                ..self.bytes(item.brace_token.span.close()).start,
        }
    }

    /// The bytes of a part of the file.
    pub(crate) fn bytes(&self, span: Span) -> Range<usize> {
        let range = span.byte_range();
        range.start + self.start..range.end + self.start
    }
}

/// The message of the parser, except where it speaks of token streams.
fn parser_message(error: &syn::Error) -> String {
    let message = error.to_string();
    if message.contains("token stream") {
        "a bracket or a quote is not closed".to_owned()
    } else {
        message
    }
}

fn implements(item: &syn::ItemImpl, trait_name: &str) -> bool {
    item.trait_.as_ref().is_some_and(|(path, _)| {
        path.segments
            .last()
            .is_some_and(|last| last.ident == trait_name)
    })
}

/// A file with more items at its end, for which it need not be parsed; they have `\n` and no final
/// line break.
#[must_use]
pub fn with_items(text: &str, items: &str) -> String {
    let newline = line_break(text);
    let items = items.replace('\n', newline);
    format!("{}{newline}{newline}{items}{newline}", text.trim_end())
}

// === impl ImportedNames ===

impl ImportedNames {
    /// Whether `name` alone means that of `module`: by an import of its own, or by a glob.
    #[must_use]
    pub fn bring(&self, name: &str, module: &str) -> bool {
        const GENERATED: &str = "crate::generated::";
        let mut named = self.names.iter().filter(|(imported, _)| imported == name);
        match named.next() {
            // The user may import a name by another path; a generated type is another type.
            Some((_, from)) => !from.starts_with(GENERATED) || module.starts_with(GENERATED),
            None => self.globs.iter().any(|glob| glob == module),
        }
    }

    /// The whole path of a name that has an import of its own.
    #[must_use]
    pub fn path_of(&self, name: &str) -> Option<String> {
        let mut named = self.names.iter().filter(|(imported, _)| imported == name);
        let (_, module) = named.next()?;
        let mut renamed = self.renamed.iter();
        let original = renamed.find(|(renamed, _)| renamed == name);
        let original = original.map_or(name, |(_, original)| original);
        Some(match module.as_str() {
            "" => original.to_owned(),
            module => format!("{module}::{original}"),
        })
    }

    fn add(&mut self, prefix: &str, tree: &syn::UseTree) {
        let below = |ident: &syn::Ident| {
            if prefix.is_empty() {
                ident.to_string()
            } else {
                format!("{prefix}::{ident}")
            }
        };
        match tree {
            syn::UseTree::Path(path) => self.add(&below(&path.ident), &path.tree),
            syn::UseTree::Name(name) => {
                self.names.push((name.ident.to_string(), prefix.to_owned()));
            }
            syn::UseTree::Rename(rename) => {
                let name = rename.rename.to_string();
                self.renamed.push((name.clone(), rename.ident.to_string()));
                self.names.push((name, prefix.to_owned()));
            }
            syn::UseTree::Glob(_) => self.globs.push(prefix.to_owned()),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add(prefix, tree))
            }
        }
    }
}

fn parsed_part_start(text: &str) -> usize {
    let start = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let rest = &text[start..];
    if rest.starts_with("#!") && !rest[2..].trim_start().starts_with('[') {
        return start + rest.find('\n').unwrap_or(rest.len());
    }
    start
}

fn insert(text: &str, at: usize, added: &str) -> String {
    let mut result = String::with_capacity(text.len() + added.len());
    result.push_str(&text[..at]);
    result.push_str(added);
    result.push_str(&text[at..]);
    result
}

fn line_break(text: &str) -> &'static str {
    let all = text.matches('\n').count();
    if all > 0 && text.matches("\r\n").count() * 2 > all {
        "\r\n"
    } else {
        "\n"
    }
}

fn indentation_at(text: &str, offset: usize) -> &str {
    let line_start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[line_start..offset];
    let end = line
        .find(|c: char| c != ' ' && c != '\t')
        .unwrap_or(line.len());
    &line[..end]
}

fn indented(line: &str, outer: &str) -> String {
    if line.is_empty() {
        return String::new();
    }
    if !outer.contains('\t') {
        return format!("{outer}{line}");
    }
    let content = line.trim_start_matches(' ');
    let depth = (line.len() - content.len()) / 4;
    format!("{outer}{}{content}", "\t".repeat(depth))
}

#[cfg(test)]
mod tests;
