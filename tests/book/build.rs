//! Writes a module for each block of Rust in the pages.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The example whose generated code has the kind of the pages about children.
const SITES: &str = "examples/19-children-reconcile";

/// A block of Rust with the comments above it.
struct Block {
    name: String,
    comments: Vec<(String, String)>,
    code: String,
}

impl Block {
    fn comment(&self, key: &str) -> Option<&str> {
        let found = self.comments.iter().find(|(it, _)| it == key);
        found.map(|(_, value)| value.as_str())
    }

    /// The items of the block: as it is, or around its methods or statements.
    fn items(&self) -> String {
        // Code that a page leaves out.
        let code = self.code.replace('…', "unimplemented!()");
        let first = code.trim_start();
        let is_method = (first.starts_with("async fn") || first.starts_with("fn"))
            && first.contains("self")
            || self.comment("of").is_some();
        let is_items = ["impl ", "#[", "async fn", "fn ", "use kopf_tests"]
            .iter()
            .any(|it| first.starts_with(it));
        if is_method {
            let of = self.comment("of").unwrap_or("Operator");
            let own = if of == "Operator" { OPERATOR } else { "" };
            return format!("{own}impl {of} {{\n{code}}}\n");
        }
        if is_items {
            let own = if first.starts_with("impl ") {
                OPERATOR
            } else {
                ""
            };
            let code = if self.comment("compiled only").is_some() {
                // The program of the test is the reader's.
                let code = code.replace("#[test]", "").replace("#[tokio::test]", "");
                code.replace("env!(\"CARGO_BIN_EXE_my-operator\")", "PROGRAM")
            } else {
                code
            };
            return format!("{own}{code}");
        }
        let context = self
            .comment("in")
            .unwrap_or("ChangeContext<EphemeralVolumeClaim>");
        let returns = self.comment("returns");
        let end = if returns.is_some() { "" } else { ";\nOk(())" };
        let mut lets = String::new();
        for (_, value) in self.comments.iter().filter(|(key, _)| key == "let") {
            let _ = writeln!(lets, "let {value};");
        }
        let returns = returns.unwrap_or("HandlerResult");
        format!(
            "{OPERATOR}impl Operator {{\nasync fn block(&self, cx: &mut {context}) -> {returns} {{\n{lets}{code}{end}\n}}\n}}\n"
        )
    }
}

/// A type with the fields of the world's operator, and with methods of its own in each block.
const OPERATOR: &str = "#[derive(Default)]\nstruct Operator(world::Operator);\n\
    impl std::ops::Deref for Operator {\ntype Target = world::Operator;\n\
    fn deref(&self) -> &world::Operator {\n&self.0\n}\n}\n";

/// The blocks of a page.
fn blocks(name: &str, page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut comments = Vec::new();
    let mut code: Option<String> = None;
    for line in page.lines() {
        match (&mut code, line) {
            (None, "```rust") => code = Some(String::new()),
            (Some(text), "```") => {
                let name = format!("{}_{}", name.replace('-', "_"), found.len() + 1);
                let code = std::mem::take(text);
                let comments = std::mem::take(&mut comments);
                found.push(Block {
                    name,
                    comments,
                    code,
                });
            }
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, line) => {
                let comment = line
                    .strip_prefix("<!-- ")
                    .and_then(|it| it.strip_suffix(" -->"));
                match comment.and_then(|it| it.split_once(": ")) {
                    Some((key, value)) => comments.push((key.to_owned(), value.to_owned())),
                    None => comments.clear(),
                }
            }
        }
        if line == "```" {
            code = None;
        }
    }
    found
}

/// Copies a folder; the paths of modules follow from their places.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the output folder is writable");
    for entry in fs::read_dir(from).expect("the example is there") {
        let path = entry.expect("the example can be listed").path();
        let copied = to.join(path.file_name().expect("a file has a name"));
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, &copied).expect("the output folder is writable");
        }
    }
}

/// The modules of the example: what kopf-gen has generated, and its handlers.
fn sites(root: &Path) -> String {
    let example = root.join(SITES);
    println!("cargo::rerun-if-changed={}", example.display());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    copy(&example.join("crds"), &out.join("crds"));
    copy(&example.join("src/generated"), &out.join("sites"));
    let generated = out.join("sites/mod.rs");
    fs::copy(example.join("src/generated.rs"), &generated).expect("the example is there");
    let handlers = example.join("src/handlers/website.rs");
    let handlers = handlers.canonicalize().expect("the example is there");
    format!(
        "#[path = {generated:?}]\nmod generated;\n\
         mod sites {{\n#[derive(Default)]\npub struct Operator;\n\
         #[path = {handlers:?}]\nmod website;\npub use super::generated::website::WebsiteHandlers;\n}}\n"
    )
}

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let docs = root.join("docs");
    println!("cargo::rerun-if-changed={}", docs.display());
    println!(
        "cargo::rerun-if-changed={}",
        root.join("README.md").display()
    );
    let mut pages: Vec<PathBuf> = fs::read_dir(docs)
        .expect("docs/ is there")
        .map(|entry| entry.expect("docs/ can be listed").path())
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect();
    pages.push(root.join("README.md"));
    pages.sort();
    let (mut text, mut count) = (sites(&root), 0);
    for page in pages {
        let name = page
            .file_stem()
            .expect("a page has a name")
            .to_string_lossy()
            .to_lowercase();
        for block in blocks(
            &name,
            &fs::read_to_string(&page).expect("a page is readable"),
        ) {
            count += 1;
            let with = block.comment("with");
            let with = with.map_or_else(String::new, |it| format!("use super::{it}::Operator;\n"));
            let _ = write!(
                text,
                "mod {} {{\nuse super::world::{{self, *}};\n{with}{}}}\n",
                block.name,
                block.items()
            );
        }
    }
    let _ = writeln!(text, "const COUNT: usize = {count};");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("blocks.rs");
    fs::write(out, text).expect("the output folder is writable");
}
