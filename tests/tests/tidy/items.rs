//! The items that a file defines, with their names, places and lengths.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::sources::SourceFile;

/// A keyword that begins an item with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Module,
    Type,
    Function,
}

/// An item that a file defines, outside of its `mod tests`.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// The lines from the keyword to the closing brace of the body; zero without a body.
    pub(crate) lines: usize,
    /// How many braces are around the item.
    pub(crate) depth: usize,
}

/// Every module, type and function that the file defines outside of tests.
pub(crate) fn items_of(file: &SourceFile) -> Vec<Item> {
    let mut items = Vec::new();
    collect(file.tokens(), 0, &mut items);
    items
}

fn collect(tokens: TokenStream, depth: usize, items: &mut Vec<Item>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(after) = end_of_test_item(&tokens, at) {
            at = after;
            continue;
        }
        if let TokenTree::Group(group) = &tokens[at] {
            collect(group.stream(), depth + 1, items);
        }
        if let (Some(kind), Some(TokenTree::Ident(name))) =
            (item_kind(&tokens, at), tokens.get(at + 1))
        {
            let line = tokens[at].span().start().line;
            let end = body(&tokens, at + 2).map_or(line, |body| body.span_close().end().line);
            items.push(Item {
                kind,
                name: name.to_string(),
                line,
                lines: if end == line { 0 } else { end - line + 1 },
                depth,
            });
        }
        at += 1;
    }
}

fn item_kind(tokens: &[TokenTree], at: usize) -> Option<ItemKind> {
    let TokenTree::Ident(keyword) = &tokens[at] else {
        return None;
    };
    // `fn(u8)` is a type, and `r#mod` is not a keyword.
    match keyword.to_string().as_str() {
        "mod" => Some(ItemKind::Module),
        "struct" | "enum" | "trait" | "type" | "union" => Some(ItemKind::Type),
        "fn" => Some(ItemKind::Function),
        _ => None,
    }
}

/// The braces that follow, unless a semicolon comes first.
fn body(tokens: &[TokenTree], from: usize) -> Option<&proc_macro2::Group> {
    tokens[from..]
        .iter()
        .take_while(|token| !matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';'))
        .find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
            _ => None,
        })
}

/// Where the item ends that `#[cfg(test)]` or `#[test]` stands before, if one begins here.
fn end_of_test_item(tokens: &[TokenTree], at: usize) -> Option<usize> {
    let (TokenTree::Punct(hash), Some(TokenTree::Group(attribute))) =
        (&tokens[at], tokens.get(at + 1))
    else {
        return None;
    };
    let text = attribute.stream().to_string().replace(' ', "");
    let marks_test = text == "cfg(test)" || text == "test" || text.starts_with("tokio::test");
    if hash.as_char() != '#' || hash.spacing() != Spacing::Alone || !marks_test {
        return None;
    }
    let rest = &tokens[at + 2..];
    let ends = rest.iter().position(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    })?;
    Some(at + 2 + ends + 1)
}
