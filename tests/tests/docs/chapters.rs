//! The page for those who know Kopf has each chapter of its documentation, by Kopf's title.

use super::links::read;

/// The chapters of Kopf's documentation for users.
const CHAPTERS: [&str; 40] = [
    "Installation",
    "Walkthrough",
    "Concepts",
    "Architecture",
    "Handlers",
    "Daemons",
    "Timers",
    "Arguments",
    "Async/Await",
    "Loading and importing",
    "Resource specification",
    "Filtering",
    "Results delivery",
    "Patching",
    "Error handling",
    "Sub-handlers",
    "Scopes",
    "In-memory containers",
    "In-memory indexing",
    "Admission control",
    "Startup",
    "Shutdown",
    "Health-checks",
    "Authentication",
    "Configuration",
    "Peering",
    "Command-line options",
    "Events",
    "Hierarchies",
    "Operator testing",
    "Embedding",
    "Deployment",
    "Continuity",
    "Idempotence",
    "Reconciliation",
    "Tips & Tricks",
    "Troubleshooting",
    "Minikube",
    "Naming",
    "Alternatives",
];

/// What stands beside a title in the table.
fn counterpart<'a>(page: &'a str, title: &str) -> Option<&'a str> {
    let table = page.split("\n## Chapters of Kopf's documentation").nth(1)?;
    let mut rows = table.lines().filter_map(|line| {
        let (first, second) = line.strip_prefix("| ")?.split_once(" | ")?;
        (first == title).then_some(second)
    });
    rows.next_back()
}

#[test]
fn every_chapter_of_kopf_leads_to_a_page() {
    let page = read("docs/kopf.md".as_ref());
    let leads = |title: &str| counterpart(&page, title).is_some_and(|it| it.contains("]("));
    let missing: Vec<_> = CHAPTERS.iter().filter(|it| !leads(it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
