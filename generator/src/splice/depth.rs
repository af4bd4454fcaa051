//! How deep Rust text nests: the parser needs stack for each level.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree, token_stream};

/// The deepest nesting of brackets, as in rustc.
pub(super) const DEEPEST: usize = 128;

/// The tokens of an expression or a type, with those that surround it, up to which each may be a
/// level of its own, such as the `&` of a reference.
pub(super) const LONGEST: usize = 4096;

/// The tokens between two brackets, as far as they are read.
struct OpenGroup {
    tokens: token_stream::IntoIter,
    /// The tokens since the last that ended an expression, a type or an item.
    run: usize,
    last: LastToken,
}

/// What the next token may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastToken {
    Attribute,
    Block,
    Other,
}

/// The first token that is too deep for a parser.
pub(crate) fn too_deep(tokens: TokenStream) -> Option<Span> {
    let mut open = vec![OpenGroup::new(tokens)];
    // The runs of all open groups.
    let mut run = 0;
    while let Some(group) = open.last_mut() {
        let before = group.run;
        let Some(token) = group.tokens.next() else {
            run -= before;
            open.pop();
            continue;
        };
        group.count(&token);
        run = run + group.run - before;
        let too_deep = open.len() > DEEPEST && matches!(token, TokenTree::Group(_));
        if too_deep || run > LONGEST {
            return Some(token.span());
        }
        if let TokenTree::Group(group) = token {
            open.push(OpenGroup::new(group.stream()));
        }
    }
    None
}

// === impl OpenGroup ===

impl OpenGroup {
    fn new(tokens: TokenStream) -> Self {
        Self {
            tokens: tokens.into_iter(),
            run: 0,
            last: LastToken::Other,
        }
    }

    fn count(&mut self, token: &TokenTree) {
        let (ends, last) = match token {
            TokenTree::Punct(punct) => match (punct.as_char(), self.last) {
                (';' | ',', _) => (true, LastToken::Other),
                ('#', _) | ('!', LastToken::Attribute) => (false, LastToken::Attribute),
                _ => (false, LastToken::Other),
            },
            TokenTree::Group(group) => match (group.delimiter(), self.last) {
                (Delimiter::Bracket, LastToken::Attribute) => (true, LastToken::Other),
                (Delimiter::Brace, last) => (last == LastToken::Block, LastToken::Block),
                (_, last) => (last == LastToken::Block, LastToken::Other),
            },
            // `else` continues what is before the block.
            TokenTree::Ident(name) => (
                self.last == LastToken::Block && name != "else",
                LastToken::Other,
            ),
            TokenTree::Literal(_) => (self.last == LastToken::Block, LastToken::Other),
        };
        self.run = if ends { 0 } else { self.run + 1 };
        self.last = last;
    }
}
