//! Holds the import tables of ARCHITECTURE.md against the imports in the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::sources::SourceFile;

/// What each module of one crate may import, as its table says.
#[derive(Debug)]
pub(crate) struct Layers {
    rows: BTreeMap<String, Allowance>,
}

#[derive(Debug)]
enum Allowance {
    Only(BTreeSet<String>),
    AllBut(BTreeSet<String>),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) importer: String,
    pub(crate) imported: String,
}

/// Stands in `Violation::imported` for a module that the table forgot.
const NO_ROW: &str = "";

impl Layers {
    /// Reads the table below the heading that names the crate.
    ///
    /// A row is "`module`, `module::child` | purpose | `a`, `b`", where the last cell may also say
    /// "nothing of ours", "everything", or "everything but `x`". A row covers the module and those
    /// of its children that have no row of their own.
    pub(crate) fn parse(architecture: &str, crate_name: &str) -> Option<Self> {
        let rows = architecture
            .lines()
            .skip_while(|line| !(line.starts_with('#') && line.contains(crate_name)))
            .skip(1)
            .take_while(|line| !line.starts_with('#'))
            .filter(|line| line.starts_with("| `"))
            .flat_map(|line| {
                let mut cells = line.trim_matches('|').split('|');
                let modules = quoted(cells.next().unwrap_or_default());
                let right = cells.next_back().unwrap_or_default();
                modules.into_iter().map(move |module| {
                    let named = quoted(right);
                    let allowance = if right.contains("everything") {
                        Allowance::AllBut(named)
                    } else {
                        Allowance::Only(named)
                    };
                    (module, allowance)
                })
            })
            .collect::<BTreeMap<_, _>>();
        (!rows.is_empty()).then_some(Self { rows })
    }

    /// Modules that may import each other in a ring, which would make "downwards" meaningless.
    pub(crate) fn ring(&self) -> Option<Vec<&str>> {
        let mut settled = BTreeSet::new();
        self.rows
            .keys()
            .find_map(|start| self.ring_through(start, &mut Vec::new(), &mut settled))
    }

    fn ring_through<'a>(
        &'a self,
        module: &'a str,
        path: &mut Vec<&'a str>,
        settled: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = path.iter().position(|earlier| *earlier == module) {
            return Some(path[start..].to_vec());
        }
        if settled.contains(module) {
            return None;
        }
        path.push(module);
        let allowance = &self.rows[module];
        let ring = self
            .rows
            .keys()
            .filter(|other| !is_within(other, module) && !is_within(module, other))
            .filter(|other| allowance.permits(other))
            .find_map(|other| self.ring_through(other, path, settled));
        path.pop();
        settled.insert(module);
        ring
    }

    /// The most specific row for a module: `a::b` before `a`.
    fn row(&self, module: &[String]) -> Option<(String, &Allowance)> {
        (1..=module.len()).rev().find_map(|length| {
            let name = module[..length].join("::");
            self.rows.get(&name).map(|allowance| (name, allowance))
        })
    }
}

impl Allowance {
    fn permits(&self, imported: &str) -> bool {
        match self {
            Self::Only(names) => names.contains(imported),
            Self::AllBut(names) => !names.contains(imported),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            importer,
            imported,
        } = self;
        if imported == NO_ROW {
            return write!(
                formatter,
                "{file}: module `{importer}` has no row in ARCHITECTURE.md"
            );
        }
        write!(
            formatter,
            "{file}:{line}: `{importer}` may not import `{imported}`; ARCHITECTURE.md says what it may"
        )
    }
}

/// Every import of a sibling that the table does not allow, and every module without a row.
pub(crate) fn violations(layers: &Layers, files: &[SourceFile]) -> Vec<Violation> {
    let modules: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.module.first())
        .map(String::as_str)
        .collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_layered()) {
        let violation = |line, importer: &str, imported: &str| Violation {
            file: file.path.clone(),
            line,
            importer: importer.to_owned(),
            imported: imported.to_owned(),
        };
        let Some((importer, allowance)) = layers.row(&file.module) else {
            found.push(violation(1, &file.module.join("::"), NO_ROW));
            continue;
        };
        for Import { target, line } in imports_of(file) {
            let known = target
                .first()
                .is_some_and(|first| modules.contains(first.as_str()));
            let Some((imported, _)) = layers.row(&target).filter(|_| known) else {
                continue;
            };
            let inner = is_within(&importer, &imported) || is_within(&imported, &importer);
            if !inner && !allowance.permits(&imported) {
                found.push(violation(line, &importer, &imported));
            }
        }
    }
    found
}

/// A path to an item of the same crate, as absolute segments.
pub(crate) struct Import {
    pub(crate) target: Vec<String>,
    pub(crate) line: usize,
}

/// The imports of one file, without those inside `mod tests`.
pub(crate) fn imports_of(file: &SourceFile) -> Vec<Import> {
    let mut imports = Vec::new();
    scan(file.tokens(), &file.module, &mut imports);
    imports
}

/// Collects the absolute target of every path that begins with `crate`, `self` or `super`.
fn scan(tokens: TokenStream, module: &[String], imports: &mut Vec<Import>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(ident) if ident == "mod" => {
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    // Tests may look at anything: they are not part of the layers.
                    if name != "tests" {
                        let inner = [module, &[name.to_string()]].concat();
                        scan(body.stream(), &inner, imports);
                    }
                    at += 3;
                    continue;
                }
            }
            TokenTree::Ident(ident) if ident == "crate" && is_path_separator(&tokens, at + 1) => {
                at = read_path(&tokens, at + 3, Vec::new(), imports);
                continue;
            }
            TokenTree::Ident(ident) if ident == "super" && is_path_separator(&tokens, at + 1) => {
                let mut base = module[..module.len().saturating_sub(1)].to_vec();
                at += 3;
                while matches!(&tokens.get(at), Some(TokenTree::Ident(next)) if *next == "super") {
                    base.pop();
                    at += 3;
                }
                at = read_path(&tokens, at, base, imports);
                continue;
            }
            TokenTree::Group(group) => scan(group.stream(), module, imports),
            _ => {}
        }
        at += 1;
    }
}

/// Reads `a::b::{c, d::e}` from `at`, below `base`; returns where it ends.
fn read_path(
    tokens: &[TokenTree],
    mut at: usize,
    mut base: Vec<String>,
    imports: &mut Vec<Import>,
) -> usize {
    let line = tokens.get(at).map_or(0, |token| token.span().start().line);
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(ident)) => {
                base.push(ident.to_string());
                at += 1;
                if !is_path_separator(tokens, at) {
                    break;
                }
                at += 2;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut start = 0;
                while start < inner.len() {
                    let end = read_path(&inner, start, base.clone(), imports);
                    start = inner[end.max(start)..]
                        .iter()
                        .position(is_comma)
                        .map_or(inner.len(), |comma| end.max(start) + comma + 1);
                }
                return at + 1;
            }
            _ => break,
        }
    }
    imports.push(Import { target: base, line });
    at
}

fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    colon(tokens.get(at)) && colon(tokens.get(at + 1))
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

fn is_within(module: &str, parent: &str) -> bool {
    module
        .strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}
