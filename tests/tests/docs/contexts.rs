//! A page for each context, with every method that handlers can call on it, read from the source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use super::generated_page::{cell, compare};
use super::repository;

/// The contexts in the order of the book: type, page, the handlers that take it.
const CONTEXTS: [(&str, &str, &str); 16] = [
    (
        "ChangeContext",
        "change",
        "`on: create`, `update`, `delete`, `resume`, and sub-handlers",
    ),
    (
        "FieldContext",
        "field",
        "`on: field`, and `on: update` with `field`; several fields are a handler each",
    ),
    ("EventContext", "event", "`on: event`"),
    ("ReconcileContext", "reconcile", "`on: reconcile`"),
    ("ChildContext", "child", "`on: child`"),
    ("DaemonContext", "daemon", "`daemon`"),
    ("TimerContext", "timer", "`timer`"),
    ("IndexContext", "index", "`index`"),
    ("FilterContext", "filter", "`when` and other predicates"),
    ("ValidationContext", "validation", "`validate`"),
    ("MutationContext", "mutation", "`mutate`"),
    ("StartupContext", "startup", "`startup` and `state`"),
    ("CleanupContext", "cleanup", "`cleanup`"),
    ("LoginContext", "login", "`login`"),
    ("ProbeContext", "probe", "`probe`"),
    (
        "TestContext",
        "test",
        "unit tests, which build the others with it",
    ),
];

/// Where contexts are defined.
const SOURCES: [&str; 3] = [
    "runtime/src/context",
    "runtime/src/operator/hook",
    "runtime/src",
];

/// What a block of source gives to a context.
#[derive(Debug, Default, Clone)]
struct Block {
    methods: Vec<(String, String)>,
    /// Macros that the block calls.
    calls: Vec<String>,
}

/// What the sources say about contexts.
#[derive(Debug, Default)]
struct Found {
    macros: BTreeMap<String, Block>,
    blocks: BTreeMap<String, Block>,
    /// The first paragraph of the documentation of a type.
    docs: BTreeMap<String, String>,
    targets: BTreeMap<String, String>,
}

/// The lines of documentation before an item, up to the first empty one.
fn paragraph(docs: &[&str]) -> String {
    let lines = docs.iter().take_while(|line| !line.is_empty());
    let text = lines.copied().collect::<Vec<_>>().join(" ");
    let links =
        regex_lite::Regex::new(r"\[(`[^`]*`|[^\]]*)\](\([A-Za-z_:]*\))?").expect("a valid pattern");
    links.replace_all(&text, "$1").into_owned()
}

/// The methods and macro calls of the lines of a block.
fn block(lines: &[&str]) -> Block {
    let mut found = Block::default();
    let mut docs = Vec::new();
    let mut rest = lines.iter().map(|line| line.trim());
    while let Some(line) = rest.next() {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.trim());
        } else if line.starts_with("#[") {
        } else if line.starts_with("pub fn ") || line.starts_with("pub async fn ") {
            let mut signature = line.to_owned();
            while !signature.ends_with('{') {
                signature.push(' ');
                signature.push_str(rest.next().expect("a function has a body"));
            }
            found.methods.push((clean(&signature), paragraph(&docs)));
            docs.clear();
        } else {
            if let Some((name, _)) = line.split_once("_accessors!(") {
                found.calls.push(format!("{name}_accessors"));
            }
            docs.clear();
        }
    }
    found
}

/// A signature as a reader writes it.
fn clean(signature: &str) -> String {
    let mut text = signature.trim_end_matches('{').trim().replace("pub ", "");
    for path in [
        "k8s_openapi::apimachinery::pkg::apis::meta::v1::",
        "$crate::hierarchy::",
        "$crate::",
        "crate::",
        "serde_json::",
        "std::time::",
        "std::fmt::",
        "kube::core::object::",
        "kube::core::",
        "kube::",
        "jiff::",
    ] {
        text = text.replace(path, "");
    }
    text = text
        .replace("( ", "(")
        .replace(", )", ")")
        .replace(",)", ")");
    text.trim_end_matches(',').to_owned()
}

/// The name of the type in the first line of an `impl` without a trait.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => {
            let mut depth = 1;
            let end = generic.find(|letter| {
                depth += i32::from(letter == '<') - i32::from(letter == '>');
                depth == 0
            })?;
            &generic[end + 1..]
        }
        None => rest,
    };
    let name = rest.trim_start();
    (!name.contains(" for ")).then(|| name.split(['<', ' ']).next().unwrap_or_default())
}

impl Found {
    fn read(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let mut docs = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            let length = lines[at..].iter().position(|it| *it == "}").unwrap_or(0);
            let inside = &lines[at + 1..(at + length).max(at + 1)];
            if let Some(doc) = line.strip_prefix("///") {
                docs.push(doc.trim());
                at += 1;
                continue;
            }
            if let Some(name) = line.strip_prefix("macro_rules! ") {
                let name = name.trim_end_matches(" {").to_owned();
                self.macros.insert(name, block(inside));
                at += length;
            } else if let Some(name) = line.strip_prefix("pub struct ") {
                let name = name.split(['<', ' ', ';']).next().unwrap_or_default();
                self.docs.insert(name.to_owned(), paragraph(&docs));
            } else if line.starts_with("impl") && line.contains(" Deref for ") {
                let name = line.split(" Deref for ").nth(1).unwrap_or_default();
                let name = name.split(['<', ' ']).next().unwrap_or_default();
                let target = inside
                    .iter()
                    .find_map(|it| it.trim().strip_prefix("type Target = "));
                let target = target.unwrap_or_default().split(['<', ';']).next();
                let pair = (name.to_owned(), target.unwrap_or_default().to_owned());
                self.targets.extend([pair]);
            } else if let Some(name) = implemented(line).filter(|_| line.ends_with('{')) {
                let found = block(inside);
                let known = self.blocks.entry(name.to_owned()).or_default();
                known.methods.extend(found.methods);
                known.calls.extend(found.calls);
                at += length;
            } else if let Some((name, context)) = line.split_once("!(") {
                let context = context.split([',', ')']).next().unwrap_or_default();
                let known = self.blocks.entry(context.to_owned()).or_default();
                known.calls.push(name.to_owned());
            }
            if !line.starts_with("#[") {
                docs.clear();
            }
            at += 1;
        }
    }

    /// The methods of a context and of the macros that it calls, by name once.
    fn methods(&self, context: &str) -> Vec<(String, String)> {
        let mut waiting = vec![self.blocks.get(context).cloned().unwrap_or_default()];
        let mut found: Vec<(String, String)> = Vec::new();
        while !waiting.is_empty() {
            let block = waiting.remove(0);
            for (signature, docs) in block.methods {
                let name = |signature: &str| {
                    let name = signature.split(['(', '<']).next().unwrap_or_default();
                    name.to_owned()
                };
                if !found
                    .iter()
                    .any(|(known, _)| name(known) == name(&signature))
                {
                    found.push((signature, docs));
                }
            }
            let called = block.calls.iter().filter_map(|name| self.macros.get(name));
            waiting.extend(called.cloned());
        }
        found
    }
}

fn sources() -> Found {
    let mut found = Found::default();
    for folder in SOURCES {
        let entries = fs::read_dir(repository().join(folder)).expect("the folder is there");
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|it| it == "rs"));
        files.sort();
        for file in files {
            found.read(&fs::read_to_string(file).expect("a source is readable"));
        }
    }
    found
}

/// The page of one context.
fn page(found: &Found, context: &str, takers: &str) -> String {
    let mut text = format!("# {context}\n\nTaken by {takers}.\n");
    if let Some(docs) = found.docs.get(context) {
        let _ = write!(text, "\n{docs}\n");
    }
    let target = found.targets.get(context).map(String::as_str);
    let other = CONTEXTS.iter().find(|(name, ..)| Some(*name) == target);
    let mut methods = found.methods(context);
    match (target, other) {
        (Some(target), Some((_, page, _))) => {
            let _ = write!(
                text,
                "\nIt also has all methods of [{target}]({page}.md).\n"
            );
        }
        (Some(target), None) => {
            let known: Vec<String> = methods.iter().map(|(it, _)| it.clone()).collect();
            let name = |it: &str| it.split(['(', '<']).next().unwrap_or_default().to_owned();
            let mut more = found.methods(target);
            more.retain(|(it, _)| !known.iter().any(|known| name(known) == name(it)));
            methods.extend(more);
        }
        (None, _) => {}
    }
    assert!(!methods.is_empty(), "{context} has no methods");
    text.push_str("\n| method | |\n| --- | --- |\n");
    for (signature, docs) in methods {
        let signature = signature.replacen("fn ", "", 1);
        assert!(
            !docs.is_empty(),
            "{context}: {signature} has no documentation"
        );
        let _ = writeln!(text, "| `{}` | {} |", cell(&signature), cell(&docs));
    }
    text
}

#[test]
fn each_context_has_a_page_with_every_method() {
    let found = sources();
    for (context, name, takers) in CONTEXTS {
        compare(
            &format!("contexts/{name}.md"),
            &page(&found, context, takers),
        );
    }
}

#[test]
fn every_context_of_the_prelude_has_a_page() {
    let prelude = repository().join("runtime/src/prelude.rs");
    let prelude = fs::read_to_string(prelude).expect("the prelude is readable");
    let word = regex_lite::Regex::new(r"\b([A-Z][A-Za-z]*Context)\b").expect("a valid pattern");
    for name in word.captures_iter(&prelude) {
        // These two are traits, which the others implement.
        let is_trait = ["ObjectContext", "MemoContext"].contains(&&name[1]);
        let has_page = CONTEXTS.iter().any(|(context, ..)| *context == &name[1]);
        assert!(is_trait || has_page, "{} has no page", &name[1]);
    }
}

#[test]
fn methods_of_macros_belong_to_the_contexts_that_call_them() {
    let mut found = Found::default();
    found.read(
        "macro_rules! a_accessors {\n    /// Shared.\n    pub fn b(&self) -> $crate::C {\n}\n\
         impl<K: D<E>> XContext<K> {\n    /// Own.\n    pub fn own(\n        &self,\n    ) -> u8 {\n    }\n\
         }\na_accessors!(XContext, inputs);\n",
    );
    let methods = found.methods("XContext");
    let signatures: Vec<&str> = methods.iter().map(|(it, _)| it.as_str()).collect();
    assert_eq!(signatures, ["fn own(&self) -> u8", "fn b(&self) -> C"]);
}
