//! The API server's responses, counted per definition and in total.

use std::fmt;

use kopf_corpus::roundtrip::ObjectOrigin;

/// The results of all definitions.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    results: Vec<DefinitionResult>,
}

/// The results of one definition.
#[derive(Debug)]
pub(crate) struct DefinitionResult {
    name: String,
    refused: Option<String>,
    broken: Vec<String>,
    /// Objects that the API server accepted unchanged.
    unchanged: usize,
    /// Objects that the API server accepted after fields were removed.
    reduced: usize,
    /// The number of fields removed for that.
    removals: usize,
    /// Objects that the API server never accepted, with its last message.
    given_up: Vec<(ObjectOrigin, String)>,
    /// Objects that the API server accepted and stored as before after the types.
    kept: usize,
    /// Objects that the types changed.
    changed: Vec<(ObjectOrigin, String)>,
    /// Samples that the API server does not serve as the corpus has them.
    other_samples: Vec<String>,
}

// === impl Summary ===

impl Summary {
    pub(crate) fn add(&mut self, result: DefinitionResult) {
        self.results.push(result);
    }

    pub(crate) fn changed(&self) -> usize {
        self.sum(|result| result.changed.len())
    }

    /// Everything but definitions and objects that are accepted and stay as they are.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.results
            .iter()
            .flat_map(DefinitionResult::problems)
            .collect()
    }

    fn sum(&self, of: impl Fn(&DefinitionResult) -> usize) -> usize {
        self.results.iter().map(of).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} definitions, {} refused by the server, {} broken off",
            self.results.len(),
            self.sum(|result| result.refused.iter().count()),
            self.sum(|result| usize::from(!result.broken.is_empty())),
        )?;
        writeln!(
            formatter,
            "before: {} objects accepted unchanged, {} after {} removals, {} never",
            self.sum(|result| result.unchanged),
            self.sum(|result| result.reduced),
            self.sum(|result| result.removals),
            self.sum(|result| result.given_up.len()),
        )?;
        write!(
            formatter,
            "after: {} objects accepted and stored as before, {} not; {} samples served otherwise",
            self.sum(|result| result.kept),
            self.changed(),
            self.sum(|result| result.other_samples.len()),
        )
    }
}

// === impl DefinitionResult ===

impl DefinitionResult {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            refused: None,
            broken: Vec::new(),
            unchanged: 0,
            reduced: 0,
            removals: 0,
            given_up: Vec::new(),
            kept: 0,
            changed: Vec::new(),
            other_samples: Vec::new(),
        }
    }

    fn problems(&self) -> Vec<String> {
        let of_objects = self.given_up.iter().chain(&self.changed);
        let of_objects = of_objects.map(|(origin, problem)| format!("{origin}: {problem}"));
        self.refused
            .iter()
            .chain(&self.broken)
            .chain(&self.other_samples)
            .cloned()
            .chain(of_objects)
            .map(|problem| format!("{}: {problem}", self.name))
            .collect()
    }

    pub(crate) fn refuse(&mut self, problem: String) {
        self.refused = Some(problem);
    }

    pub(crate) fn break_off(&mut self, problem: String) {
        self.broken.push(problem);
    }

    pub(crate) fn accept(&mut self, removals: usize) {
        if removals == 0 {
            self.unchanged += 1;
        } else {
            self.reduced += 1;
            self.removals += removals;
        }
    }

    pub(crate) fn give_up(&mut self, origin: ObjectOrigin, message: String) {
        self.given_up.push((origin, message));
    }

    pub(crate) fn keep(&mut self) {
        self.kept += 1;
    }

    pub(crate) fn serve_otherwise(&mut self, problem: String) {
        self.other_samples.push(problem);
    }

    pub(crate) fn change(&mut self, origin: ObjectOrigin, problem: String) {
        self.changed.push((origin, problem));
    }
}

impl fmt::Display for DefinitionResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            refused,
            broken,
            unchanged,
            reduced,
            removals,
            given_up,
            kept,
            changed,
            other_samples,
        } = self;
        write!(
            formatter,
            "{name}: {unchanged} unchanged, {reduced} after {removals} removals, {} never; {kept} kept, {} changed",
            given_up.len(),
            changed.len(),
        )?;
        for problem in refused.iter().chain(broken).chain(other_samples) {
            write!(formatter, "\n    {}", short(problem))?;
        }
        for (origin, problem) in given_up.iter().take(2) {
            write!(formatter, "\n    never {origin}: {}", short(problem))?;
        }
        for (origin, problem) in changed.iter().take(3) {
            write!(formatter, "\n    changed {origin}: {}", short(problem))?;
        }
        Ok(())
    }
}

fn short(text: &str) -> String {
    text.chars().take(400).collect()
}
