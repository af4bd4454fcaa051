//! Finds the fenced blocks of a Markdown page, with the comments above them.
//!
//! | comment | the block |
//! |---|---|
//! | `<!-- arguments only: reason -->` | has commands whose arguments are checked, and that are not run |
//! | `<!-- replaced: program, reason -->` | is run with a function of the test instead of that program |
//! | `<!-- file: path -->` | is written to this file before the commands below it are run |
//! | `<!-- compared by: file::test -->` | is what this test gets from a program |

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::links::{pages_below, read};

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) page: PathBuf,
    pub(crate) line: usize,
    /// The heading of the second level that it is under.
    pub(crate) heading: String,
    pub(crate) language: String,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let found = self.notes.iter().find(|(it, _)| it == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether its commands are run.
    pub(crate) fn is_run(&self) -> bool {
        self.language == "sh" && self.note("arguments only").is_none()
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page.display(), self.line)
    }
}

/// All blocks of the book and of the README.
pub(crate) fn all() -> Vec<Block> {
    let mut pages = pages_below("docs");
    pages.push("README.md".into());
    pages.iter().flat_map(|page| of_page(page)).collect()
}

/// The blocks of a page.
pub(crate) fn of_page(page: &Path) -> Vec<Block> {
    blocks(page, &read(page))
}

/// The blocks of a text. A block may be indented, in a list.
pub(crate) fn blocks(page: &Path, markdown: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut notes = Vec::new();
    let mut heading = "";
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(markdown.lines()) {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                open = Some(Block {
                    page: page.to_owned(),
                    line: number,
                    heading: heading.to_owned(),
                    language: language.to_owned(),
                    notes: std::mem::take(&mut notes),
                    text: String::new(),
                });
            }
            (Some(_), Some("")) => found.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {
                heading = line.strip_prefix("## ").unwrap_or(heading);
                match note(line) {
                    Some(it) => notes.push(it),
                    None => notes.clear(),
                }
            }
        }
    }
    found
}

/// What a reader types for these blocks, after the files that they show are written.
pub(crate) fn script<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> String {
    let mut script = String::new();
    for block in blocks {
        if let Some(path) = block.note("file") {
            let _ = write!(
                script,
                "cat > {path} <<'END OF FILE'\n{}END OF FILE\n",
                block.text
            );
        } else if block.is_run() {
            script.push_str(&block.text);
        }
    }
    script
}

/// The key and the value of a comment.
fn note(line: &str) -> Option<(String, String)> {
    let comment = line.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (key, value) = comment.split_once(": ")?;
    Some((key.to_owned(), value.to_owned()))
}

#[test]
fn blocks_have_their_languages_and_the_comments_right_above_them() {
    let page = "<!-- a: b -->\ntext\n<!-- c: d -->\n```sh\none\n```\n  ```\n  two\n  ```\n";
    let found = blocks(Path::new("page.md"), page);
    let seen: Vec<_> = found
        .iter()
        .map(|it| (it.line, &*it.language, it.notes.len(), &*it.text))
        .collect();
    assert_eq!(seen, [(4, "sh", 1, "one\n"), (7, "", 0, "  two\n")]);
    assert_eq!(found[0].note("c"), Some("d"));
}

#[test]
fn only_commands_that_are_run_and_files_are_part_of_the_script() {
    let page = "<!-- file: a -->\n```yaml\nb\n```\n```sh\none # comment\n```\n\
        <!-- arguments only: why -->\n```sh\ntwo\n```\n```text\nthree\n```\n";
    assert_eq!(
        script(&blocks(Path::new("page.md"), page)),
        "cat > a <<'END OF FILE'\nb\nEND OF FILE\none # comment\n"
    );
}
