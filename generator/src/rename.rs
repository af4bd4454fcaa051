//! Renames what the runtime has renamed, in Rust files of the user, and changes nothing else in them.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::splice::too_deep;

/// Types, by their old and their new names; the changelog has the same table.
pub const TYPES: [(&str, &str); 19] = [
    ("Change", "ChangeContext"),
    ("FieldChange", "FieldContext"),
    ("Seen", "EventContext"),
    ("Daemon", "DaemonContext"),
    ("Tick", "TimerContext"),
    ("Indexing", "IndexContext"),
    ("Validation", "ValidationContext"),
    ("Mutation", "MutationContext"),
    ("Startup", "StartupContext"),
    ("Cleanup", "CleanupContext"),
    ("Login", "LoginContext"),
    ("Probe", "ProbeContext"),
    ("EventType", "WatchEventType"),
    ("Failed", "HookFailure"),
    ("Exhausted", "CredentialsExhausted"),
    ("NeverReady", "EndedBeforeReady"),
    ("Reporter", "EventRecorder"),
    ("DiffBasePlace", "DiffBaseStore"),
    ("ProgressPlace", "ProgressStore"),
];

/// Methods without arguments.
const METHODS: [(&str, &str); 1] = [("reporter", "recorder")];

/// Types of libraries that generated modules no longer export.
const LIBRARY_TYPES: [(&str, &str); 1] = [("BTreeMap", "std::collections::BTreeMap")];

/// The crate whose names have changed.
const RUNTIME: &str = "kopf_runtime";

/// A file with new names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedFile {
    /// Its new text.
    pub text: String,
    /// Old names that stay, because the file or its crate uses them for something else.
    pub kept: BTreeSet<String>,
}

/// A replacement of bytes.
struct TextEdit {
    range: Range<usize>,
    text: String,
}

/// The renames of one file.
struct Renames<'a> {
    own: &'a BTreeSet<String>,
    edits: Vec<TextEdit>,
    kept: BTreeSet<String>,
    /// The imports to add.
    imports: BTreeSet<&'static str>,
}

/// The names that a file defines or imports from elsewhere.
#[derive(Default)]
struct OwnNames(BTreeSet<String>);

/// The names that a file defines, or imports from another crate than the runtime; nothing if it is
/// not valid Rust.
#[must_use]
pub fn own_names(text: &str) -> BTreeSet<String> {
    let mut names = OwnNames::default();
    let file = tokens_of(text).and_then(|tokens| syn::parse2(tokens).ok());
    if let Some(file) = file {
        names.visit_file(&file);
    }
    names.0
}

/// The file with new names, where `own` are names of the crate itself; `None` if nothing is to be
/// renamed, or the file is not valid Rust.
#[must_use]
pub fn renamed(text: &str, own: &BTreeSet<String>) -> Option<RenamedFile> {
    let start = start_of(text);
    let tokens = tokens_of(text)?;
    let mut renames = Renames {
        own,
        edits: Vec::new(),
        kept: BTreeSet::new(),
        imports: BTreeSet::new(),
    };
    renames.walk(tokens, &[]);
    let mut edits = renames.edits;
    for edit in &mut edits {
        edit.range.start += start;
        edit.range.end += start;
    }
    if let Some(place) = first_import(text) {
        edits.extend(renames.imports.iter().map(|path| TextEdit {
            range: place..place,
            text: format!("use {path};\n"),
        }));
    }
    edits.sort_by_key(|edit| edit.range.start);
    let kept = renames.kept;
    if edits.is_empty() && kept.is_empty() {
        return None;
    }
    let mut after = text.to_owned();
    for edit in edits.iter().rev() {
        after.replace_range(edit.range.clone(), &edit.text);
    }
    Some(RenamedFile { text: after, kept })
}

/// The tokens of a file; none if it is not valid Rust.
fn tokens_of(text: &str) -> Option<TokenStream> {
    let tokens: TokenStream = text[start_of(text)..].parse().ok()?;
    too_deep(tokens.clone()).is_none().then_some(tokens)
}

/// Spans do not count a byte-order mark.
fn start_of(text: &str) -> usize {
    text.len() - text.trim_start_matches('\u{feff}').len()
}

/// The start of the first line with an import.
fn first_import(text: &str) -> Option<usize> {
    let mut place = start_of(text);
    for line in text[place..].split_inclusive('\n') {
        if line.starts_with("use ") {
            return Some(place);
        }
        place += line.len();
    }
    None
}

fn new_name(table: &[(&str, &'static str)], old: &str) -> Option<&'static str> {
    let row = table.iter().find(|(name, _)| *name == old);
    row.map(|(_, new)| *new)
}

fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

/// The segments of the path before a token, as in `a::b::`.
fn segments_before(tokens: &[TokenTree], index: usize) -> Vec<String> {
    let mut segments = Vec::new();
    let mut end = index;
    while end >= 3 && is_mark(tokens.get(end - 1), ':') && is_mark(tokens.get(end - 2), ':') {
        let Some(TokenTree::Ident(segment)) = tokens.get(end - 3) else {
            break;
        };
        segments.insert(0, segment.to_string());
        end -= 3;
    }
    segments
}

// === impl Renames ===

impl Renames<'_> {
    /// Renames in tokens below a path, as in `use path::{tokens}`.
    fn walk(&mut self, tokens: TokenStream, below: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            let mut path = below.to_vec();
            path.extend(segments_before(&tokens, index));
            match token {
                TokenTree::Group(group) => {
                    let is_import = group.delimiter() == Delimiter::Brace
                        && is_mark(index.checked_sub(1).and_then(|it| tokens.get(it)), ':');
                    let below = if is_import { path } else { Vec::new() };
                    self.walk(group.stream(), &below);
                }
                TokenTree::Ident(_) => self.name(&tokens, index, &path),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Renames one name below a path.
    fn name(&mut self, tokens: &[TokenTree], index: usize, path: &[String]) {
        let Some(token) = tokens.get(index) else {
            return;
        };
        let name = token.to_string();
        let range = token.span().byte_range();
        let before = index.checked_sub(1).and_then(|it| tokens.get(it));
        if is_mark(before, '.') {
            let is_call = matches!(tokens.get(index + 1), Some(TokenTree::Group(arguments))
                if arguments.delimiter() == Delimiter::Parenthesis && arguments.stream().is_empty());
            if let (true, Some(new)) = (is_call, new_name(&METHODS, &name)) {
                self.replace(range, new);
            }
            return;
        }
        if path.starts_with(&["crate".to_owned(), "generated".to_owned()]) {
            if let Some(library) = new_name(&LIBRARY_TYPES, &name) {
                self.import_from_library(tokens, index, library);
            }
            return;
        }
        let is_of_runtime = path.first().is_none_or(|first| first == RUNTIME);
        let Some(new) = new_name(&TYPES, &name).filter(|_| is_of_runtime) else {
            return;
        };
        if path.is_empty() && self.own.contains(&name) {
            self.kept.insert(name);
        } else {
            self.replace(range, new);
        }
    }

    /// Removes a name from the list of an import, and imports it from its library.
    fn import_from_library(&mut self, tokens: &[TokenTree], index: usize, library: &'static str) {
        let Some(token) = tokens.get(index) else {
            return;
        };
        let range = token.span().byte_range();
        let start = match tokens.get(index + 1) {
            // `A, B`: up to the next name.
            Some(comma) if is_mark(Some(comma), ',') => {
                let next = tokens.get(index + 2);
                let end = next.map_or(comma.span().byte_range().end, |it| {
                    it.span().byte_range().start
                });
                self.replace(range.start..end, "");
                self.imports.insert(library);
                return;
            }
            // The last one: from the comma before it.
            None => index
                .checked_sub(1)
                .and_then(|it| tokens.get(it))
                .map_or(range.start, |comma| comma.span().byte_range().start),
            // `use crate::generated::kind::A;`
            Some(_) => {
                let segments = 3 * segments_before(tokens, index).len();
                let first = index.checked_sub(segments).and_then(|it| tokens.get(it));
                let start = first.map_or(range.start, |it| it.span().byte_range().start);
                self.replace(start..range.end, library);
                return;
            }
        };
        self.replace(start..range.end, "");
        self.imports.insert(library);
    }

    fn replace(&mut self, range: Range<usize>, text: &str) {
        let text = text.to_owned();
        self.edits.push(TextEdit { range, text });
    }
}

// === impl OwnNames ===

impl OwnNames {
    fn add(&mut self, name: &proc_macro2::Ident) {
        self.0.insert(name.to_string());
    }

    fn add_imports(&mut self, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.add_imports(&path.tree),
            syn::UseTree::Name(name) => self.add(&name.ident),
            syn::UseTree::Rename(rename) => self.add(&rename.rename),
            syn::UseTree::Group(group) => group.items.iter().for_each(|it| self.add_imports(it)),
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for OwnNames {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident);
        item.variants.iter().for_each(|it| self.add(&it.ident));
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_of_runtime = matches!(&item.tree, syn::UseTree::Path(path) if path.ident == RUNTIME);
        if !is_of_runtime {
            self.add_imports(&item.tree);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> String {
        let own = own_names(text);
        renamed(text, &own).map_or_else(|| text.to_owned(), |it| it.text)
    }

    #[test]
    fn types_and_methods_of_the_runtime_have_new_names() {
        let before = "// Change stays in comments.\nuse kopf_runtime::{Change, prelude::*};\n\
            async fn a(cx: &mut Change<X>) { cx.reporter().info(\"Change\"); kopf_runtime::Reporter; }\n";
        let expected = "// Change stays in comments.\nuse kopf_runtime::{ChangeContext, prelude::*};\n\
            async fn a(cx: &mut ChangeContext<X>) { cx.recorder().info(\"Change\"); kopf_runtime::EventRecorder; }\n";
        assert_eq!(after(before), expected);
        assert_eq!(after(expected), expected);
    }

    #[test]
    fn a_file_that_nests_without_end_stays_as_it_is() {
        let text = format!(
            "fn f(a: Change) {}{}",
            "{".repeat(20_000),
            "}".repeat(20_000)
        );
        assert_eq!(own_names(&text), BTreeSet::new());
        assert_eq!(renamed(&text, &BTreeSet::new()), None);
    }

    #[test]
    fn names_of_the_user_stay() {
        for text in [
            "enum Phase { Failed, Done }\nfn f() { Phase::Failed; }\n",
            "use Phase::*;\nenum Phase { Failed }\nfn f() -> Phase { Failed }\n",
            "use other::{Login, Probe};\nfn f(a: Login, b: Probe) {}\n",
            "fn f() { Status::Failed; a.reporter; a.reporter(1); }\n",
            "struct Change;\nfn f(a: Change) {}\n",
        ] {
            assert_eq!(after(text), text);
        }
        let text = "struct Change;\nfn f(a: Change, b: Tick) {}\n";
        let own = own_names(text);
        let found = renamed(text, &own).expect("a rename");
        assert_eq!(
            found.text,
            "struct Change;\nfn f(a: Change, b: TimerContext) {}\n"
        );
        assert_eq!(found.kept, ["Change".to_owned()].into());
    }

    #[test]
    fn types_of_libraries_are_imported_from_these() {
        for (before, expected) in [
            (
                "\u{feff}use crate::generated::a::{BTreeMap, A};\r\n",
                "\u{feff}use std::collections::BTreeMap;\nuse crate::generated::a::{A};\r\n",
            ),
            (
                "use b::B;\nuse crate::generated::a::{A, BTreeMap};\n",
                "use std::collections::BTreeMap;\nuse b::B;\nuse crate::generated::a::{A};\n",
            ),
            (
                "use crate::generated::a::BTreeMap;\n",
                "use std::collections::BTreeMap;\n",
            ),
        ] {
            assert_eq!(after(before), expected);
        }
    }

    #[test]
    fn the_changelog_has_these_renames() {
        let changelog = include_str!("../../CHANGELOG.md");
        for (old, new) in TYPES {
            assert!(
                changelog.contains(&format!("| `{old}` | `{new}` |")),
                "{old}"
            );
        }
        for (old, new) in METHODS {
            assert!(changelog.contains(&format!("| `cx.{old}()` | `cx.{new}()` |")));
        }
    }
}
