//! Every block of the pages is run, compiled, read or compared; no block is only there to be read.

use std::fs;

use super::blocks::{self, Block};
use super::guides;
use super::manifests;
use super::repository;

/// Pages that another test compares as a whole with what the programs print.
const GENERATED: [&str; 2] = ["docs/command-line.md", "docs/messages.md"];

/// Why a block is not checked by any test, if it is not.
fn problem(block: &Block) -> Option<String> {
    let page = block.page.to_string_lossy();
    if GENERATED.contains(&&*page) {
        return None;
    }
    if let Some(test) = block.note("compared by") {
        return (!compares(test, &page)).then(|| format!("{test} does not compare it"));
    }
    let is_checked = match &*block.language {
        // kopf-book compiles all of them.
        "rust" => true,
        "sh" => !block.is_run() || guides::types(&page),
        "yaml" => guides::writes(block) || manifests::is_manifest(block),
        "text" => guides::writes(block),
        _ => false,
    };
    (!is_checked).then(|| format!("no test checks its `{}`", block.language))
}

/// Whether a test of this path, `tests/tests/file.rs::name`, reads the page.
fn compares(test: &str, page: &str) -> bool {
    let Some((file, name)) = test.split_once("::") else {
        return false;
    };
    let source = fs::read_to_string(repository().join(file)).unwrap_or_default();
    source.contains(&format!("fn {name}(")) && source.contains(page)
}

#[test]
fn every_block_is_checked() {
    let blocks = blocks::all();
    assert!(blocks.len() > 150, "only {} blocks", blocks.len());
    let problems: Vec<String> = blocks
        .iter()
        .filter_map(|it| Some(format!("{}: {}", it.place(), problem(it)?)))
        .collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Prints what the tests replace, which `--nocapture` shows.
#[test]
#[expect(clippy::print_stdout, reason = "a list for those who check the pages")]
fn what_is_not_run_as_written_has_a_reason() {
    for block in blocks::all() {
        for key in ["arguments only", "replaced", "compiled only"] {
            if let Some(reason) = block.note(key) {
                println!("{}, {key}: {reason}", block.place());
                assert!(reason.contains(' '), "{}: {reason}", block.place());
            }
        }
    }
}

#[test]
fn a_block_without_a_language_or_a_check_is_refused() {
    let refused = |page: &str, text: &str| {
        let found = blocks::blocks(page.as_ref(), text);
        problem(&found[0]).is_some()
    };
    assert!(refused("docs/types.md", "```\nkopf-gen types\n```\n"));
    assert!(refused("docs/why.md", "```sh\nkopf-gen types\n```\n"));
    assert!(refused("docs/why.md", "```text\nfound 1 error\n```\n"));
    assert!(refused("docs/why.md", "```yaml\nkey: value\n```\n"));
    let compared = "<!-- compared by: tests/tests/docs.rs::none -->\n```json\n{}\n```\n";
    assert!(refused("docs/why.md", compared));
    assert!(!refused("docs/why.md", "```rust\nlet a = 1;\n```\n"));
}
