//! The pages of the book are listed, and every link leads to a file and a heading that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use regex_lite::Regex;

use super::repository;

/// Pages outside of the book whose links are checked, too.
const OTHERS: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// The Markdown files of a folder and its folders, as paths from the root of the repository.
pub(crate) fn pages_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(repository().join(&folder)).expect("the folder can be listed");
        for entry in entries {
            let entry = entry.expect("the folder can be listed");
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().expect("a file has a type").is_dir();
            if is_folder && entry.file_name() != "target" {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn read(page: &Path) -> String {
    fs::read_to_string(repository().join(page)).expect("the page is readable")
}

/// The text without fenced blocks and inline code.
fn prose(markdown: &str) -> String {
    let mut is_code = false;
    let mut text = String::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let spans = line.split('`').step_by(2);
            text.extend(spans);
            text.push('\n');
        }
    }
    text
}

/// The targets of the links of a page.
fn links(markdown: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("the pattern is valid");
    let text = prose(markdown);
    let found = link.captures_iter(&text);
    found.map(|it| it[1].to_owned()).collect()
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let linked = Regex::new(r"\[([^\]]*)\]\([^)]*\)").expect("the pattern is valid");
    let text = linked.replace_all(heading, "$1").to_lowercase();
    let kept = text.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        _ if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
        _ => None,
    });
    kept.collect()
}

/// The anchors of all headings; those that occur again have numbers.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading);
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(match *count {
            0 => anchor,
            number => format!("{anchor}-{number}"),
        });
        *count += 1;
    }
    found
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}

/// Why a link of a page leads nowhere, if it does.
fn problem(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.to_owned()
    } else {
        normal(&page.parent().unwrap_or(Path::new("")).join(file))
    };
    if !repository().join(&target).exists() {
        return Some(format!("{}: no file {link}", page.display()));
    }
    let has_place = place.is_empty() || anchors(&read(&target)).contains(place);
    (!has_place).then(|| format!("{}: no heading {link}", page.display()))
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let mut pages = pages_below("docs");
    pages.extend(pages_below("examples"));
    pages.extend(OTHERS.map(PathBuf::from));
    let problems: Vec<String> = pages
        .iter()
        .flat_map(|page| {
            let links = links(&read(page));
            let problems = links.into_iter().filter_map(|link| problem(page, &link));
            problems.collect::<Vec<_>>()
        })
        .collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary = Path::new("docs/SUMMARY.md");
    let mut listed: Vec<PathBuf> = links(&read(summary))
        .iter()
        .map(|link| Path::new("docs").join(link))
        .collect();
    listed.sort();
    let mut pages = pages_below("docs");
    pages.retain(|page| page != summary);
    assert_eq!(listed, pages);
}

#[test]
fn a_link_to_nothing_is_found() {
    let page = Path::new("docs/SUMMARY.md");
    assert_eq!(problem(page, "https://example.com/none"), None);
    assert!(problem(page, "no-such-page.md").is_some());
    assert!(problem(page, "settings.md#no-such-heading").is_some());
    assert_eq!(problem(page, "settings.md#storages"), None);
}

#[test]
fn links_in_code_are_not_links() {
    assert_eq!(
        links("[a](b.md)\n```\n[c](d.md)\n```\n`[e](f.md)`"),
        ["b.md"]
    );
}

#[test]
fn headings_have_the_anchors_of_github() {
    let page = "# A `b`: c\n## Twice\n```\n# no\n```\n## Twice\n";
    let expected = ["a-b-c", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(expected));
}
