//! What the server said, counted.

use std::fmt;

use kopf_corpus::roundtrip::Label;

/// The sum over all definitions.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
}

/// One definition.
#[derive(Debug)]
pub(crate) struct Entry {
    name: String,
    refused: Option<String>,
    broken: Vec<String>,
    /// Objects that were taken as they were made.
    plain: usize,
    /// Objects that were taken after amendments.
    amended: usize,
    /// Members that were left out for that.
    amendments: usize,
    /// Objects that were never taken, with the last complaint.
    given_up: Vec<(Label, String)>,
    /// Objects that were taken again after the types, and stored as before.
    kept: usize,
    /// Objects that the types changed.
    changed: Vec<(Label, String)>,
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(crate) fn changed(&self) -> usize {
        self.entries.iter().map(|entry| entry.changed.len()).sum()
    }

    fn sum(&self, of: impl Fn(&Entry) -> usize) -> usize {
        self.entries.iter().map(of).sum()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} definitions, {} refused by the server, {} broken off",
            self.entries.len(),
            self.sum(|entry| entry.refused.iter().count()),
            self.sum(|entry| usize::from(!entry.broken.is_empty())),
        )?;
        writeln!(
            formatter,
            "before: {} objects taken as made, {} after {} amendments, {} never",
            self.sum(|entry| entry.plain),
            self.sum(|entry| entry.amended),
            self.sum(|entry| entry.amendments),
            self.sum(|entry| entry.given_up.len()),
        )?;
        write!(
            formatter,
            "after: {} objects taken and stored as before, {} not",
            self.sum(|entry| entry.kept),
            self.changed(),
        )
    }
}

// === impl Entry ===

impl Entry {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            refused: None,
            broken: Vec::new(),
            plain: 0,
            amended: 0,
            amendments: 0,
            given_up: Vec::new(),
            kept: 0,
            changed: Vec::new(),
        }
    }

    pub(crate) fn refuse(&mut self, problem: String) {
        self.refused = Some(problem);
    }

    pub(crate) fn break_off(&mut self, problem: String) {
        self.broken.push(problem);
    }

    pub(crate) fn take(&mut self, amendments: usize) {
        if amendments == 0 {
            self.plain += 1;
        } else {
            self.amended += 1;
            self.amendments += amendments;
        }
    }

    pub(crate) fn give_up(&mut self, label: Label, complaint: String) {
        self.given_up.push((label, complaint));
    }

    pub(crate) fn keep(&mut self) {
        self.kept += 1;
    }

    pub(crate) fn change(&mut self, label: Label, problem: String) {
        self.changed.push((label, problem));
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            refused,
            broken,
            plain,
            amended,
            amendments,
            given_up,
            kept,
            changed,
        } = self;
        write!(
            formatter,
            "{name}: {plain} as made, {amended} after {amendments} amendments, {} never; {kept} kept, {} changed",
            given_up.len(),
            changed.len(),
        )?;
        for problem in refused.iter().chain(broken) {
            write!(formatter, "\n    {}", short(problem))?;
        }
        for (label, problem) in given_up.iter().take(2) {
            write!(formatter, "\n    never {label}: {}", short(problem))?;
        }
        for (label, problem) in changed.iter().take(3) {
            write!(formatter, "\n    changed {label}: {}", short(problem))?;
        }
        Ok(())
    }
}

fn short(text: &str) -> String {
    text.chars().take(400).collect()
}
