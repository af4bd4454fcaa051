//! Words that names and prose of this repository must not have.

use std::fs;
use std::path::Path;

use crate::items::{Item, ItemKind, items_of};
use crate::sources::{SourceFile, repository};

/// Names that readers had to decode; each has a plain successor.
const RETIRED: &[&str] = &[
    "census",
    "clerk",
    "contest",
    "crew",
    "foreseen",
    "governors",
    "landing",
    "live",
    "means",
    "meeting",
    "news",
    "nudge",
    "reach",
    "rivals",
    "roster",
    "scene",
    "scout",
    "seen",
    "shim",
    "sighting",
    "surroundings",
    "territory",
    "told",
    "vault",
    "vitals",
    "voice",
];

/// Prose that hides the actor.
const HIDES_THE_ACTOR: &[&str] = &["nobody", "somebody", "whoever", "is told"];

/// The beginnings of paths on one machine, and of folders beside the repository.
const OUTSIDE: &[&str] = &["/work/", "/home/", "/root/", "/Users/", "/mnt/", "shared/"];

/// The modules, types and functions of a file whose names are retired.
///
/// Modules and types may not even contain such a word; a function may, since its name is closer
/// to a sentence.
pub(crate) fn retired_names(file: &SourceFile) -> Vec<Item> {
    items_of(file)
        .into_iter()
        .filter(|item| match item.kind {
            ItemKind::Module | ItemKind::Type => words(&item.name)
                .iter()
                .any(|word| RETIRED.contains(&word.as_str())),
            ItemKind::Function => RETIRED.contains(&item.name.as_str()),
        })
        .collect()
}

/// The words of a name in snake or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter != '_' {
            let last = words.last_mut().expect("there is at least one word");
            last.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The places in a text that hide the actor, as line numbers with the word.
pub(crate) fn hidden_actors(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // An underscore separates words as well: names of tests are sentences.
        let spaced: String = line
            .chars()
            .map(|letter| {
                if letter.is_alphabetic() {
                    letter.to_ascii_lowercase()
                } else {
                    ' '
                }
            })
            .collect();
        let padded = format!(
            " {} ",
            spaced.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        for phrase in HIDES_THE_ACTOR {
            if padded.contains(&format!(" {phrase} ")) {
                found.push((number + 1, *phrase));
            }
        }
    }
    found
}

/// The places in a text that name a folder outside of the repository, as line numbers with the
/// beginning of the path.
pub(crate) fn outside_folders(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for beginning in OUTSIDE {
            let mut at = line.match_indices(beginning).map(|(at, _)| &line[..at]);
            // `unshared/` and `a/work/` are other folders.
            if at.any(|before| !before.ends_with(|it: char| it.is_alphanumeric() || it == '.')) {
                found.push((number + 1, *beginning));
            }
        }
    }
    found
}

/// Every text that people write or read here, as its path and its content: sources, templates,
/// committed output, pages.
pub(crate) fn texts() -> Vec<(String, String)> {
    let root = repository();
    let mut found = Vec::new();
    for entry in fs::read_dir(&root).expect("the repository can be listed") {
        let path = entry.expect("the repository can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name != "target" && !name.starts_with('.') && name != "Cargo.lock" {
            collect(&path, &root, &mut found);
        }
    }
    found
}

fn collect(path: &Path, root: &Path, found: &mut Vec<(String, String)>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_dir() {
        if name == "target" || path.is_symlink() {
            return;
        }
        for entry in fs::read_dir(path).expect("a folder can be listed") {
            collect(&entry.expect("a folder can be listed").path(), root, found);
        }
    } else if let Ok(text) = fs::read_to_string(path) {
        let inside = path.strip_prefix(root).unwrap_or(path);
        found.push((inside.display().to_string(), text));
    }
}
