//! What a run prints: what was made, and what was found.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{fmt, fs};

use kopf_tests::TestFailure;

use crate::check::{BrokenClaim, Claim, Evidence, call_counts};
use crate::editing::EditCounts;
use crate::plan::RunPlan;
use crate::run::MadeTrouble;
use crate::schedule::Schedule;

/// The number of reasons that are printed for each broken claim.
const SHOWN: usize = 8;

/// The number of letters of a line of a log that are printed.
const WIDTH: usize = 300;

/// The result of one run.
#[derive(Debug)]
pub(crate) struct RunReport {
    pub(crate) plan: RunPlan,
    pub(crate) schedule: Schedule,
    pub(crate) made: MadeTrouble,
    pub(crate) counts: EditCounts,
    pub(crate) evidence: Evidence,
    pub(crate) broken: Vec<BrokenClaim>,
    pub(crate) took: Duration,
}

// === impl RunReport ===

impl RunReport {
    pub(crate) fn holds(&self) -> bool {
        self.broken.is_empty()
    }

    /// Writes the versions of objects beside the journal.
    pub(crate) fn keep(&self, folder: &Path) -> Result<(), TestFailure> {
        let mut text = String::new();
        for version in &self.evidence.watch.versions {
            text.push_str(&serde_json::to_string(version)?);
            text.push('\n');
        }
        fs::write(folder.join("versions.jsonl"), text)?;
        for life in &self.evidence.lives {
            if let Some(log) = &life.log {
                fs::write(folder.join(format!("process-{}.log", life.pid)), log)?;
            }
        }
        Ok(())
    }

    /// The number of processes that ended by themselves.
    fn exits(&self) -> usize {
        let lives = self.evidence.lives.iter();
        lives.filter(|life| life.by_itself).count()
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (evidence, counts) = (&self.evidence, &self.counts);
        let mut troubles: BTreeMap<_, usize> = BTreeMap::new();
        for trouble in &self.made.troubles {
            *troubles.entry(*trouble).or_default() += 1;
        }
        let row = |f: &mut fmt::Formatter<'_>, what: &str, count: &dyn fmt::Display| {
            writeln!(f, "  {what:<34}{count:>9}")
        };
        let (seed, took) = (self.plan.seed, self.took.as_secs());
        writeln!(f, "seed {seed}: made in {took} s")?;
        row(f, "kill -9", &self.made.kills)?;
        for (trouble, count) in troubles {
            row(f, &trouble.to_string(), &count)?;
        }
        row(f, "edits of objects", &count(&counts.edits))?;
        row(f, "deletions", &count(&counts.deletions))?;
        row(f, "edits of children", &count(&counts.child_edits))?;
        row(f, "deletions of children", &count(&counts.child_deletions))?;
        row(f, "gates stored", &count(&counts.reviewed))?;
        row(f, "gates denied", &count(&counts.denied))?;
        writeln!(f, "seed {seed}: seen")?;
        row(f, "processes of the operator", &evidence.lives.len())?;
        row(f, "of which ended by themselves", &self.exits())?;
        row(f, "lines of the journal", &evidence.journal.lines.len())?;
        row(f, "torn lines", &evidence.journal.torn)?;
        for count in call_counts::of(evidence) {
            let handler = count.handler;
            row(f, &format!("calls of {handler}"), &count.calls)?;
            row(f, "of which for a handled state", &count.repeated)?;
        }
        row(f, "requests of the operator", &evidence.requests)?;
        row(f, "versions of objects", &evidence.watch.versions.len())?;
        row(f, "gaps in them", &evidence.watch.gaps)?;
        let children = evidence.child_watch.versions.iter();
        row(f, "versions of children", &children.len())?;
        let deleted = children.filter(|it| it.gone).count();
        row(f, "deletions of children", &deleted)?;
        if let Some((before, after)) = &evidence.footprints {
            writeln!(f, "  at rest before: {before}\n  at rest after:  {after}")?;
        }
        writeln!(f, "seed {seed}: found")?;
        for claim in Claim::ALL {
            let found = self.broken.iter().filter(|it| it.claim == claim).count();
            let found = match found {
                0 if !claim.is_checked(evidence) => "not checked".to_owned(),
                0 => "holds".to_owned(),
                broken => format!("{broken} broken"),
            };
            row(f, &claim.to_string(), &found)?;
        }
        for claim in Claim::ALL {
            let broken = self.broken.iter().filter(|it| it.claim == claim);
            for broken in broken.take(SHOWN) {
                writeln!(f, "  {claim}: {}", broken.text)?;
            }
        }
        for life in self.evidence.lives.iter().filter(|life| life.by_itself) {
            let (pid, ending) = (life.pid, life.ending);
            let last = life.log.as_deref().and_then(|log| log.lines().last());
            let last: String = last.unwrap_or_default().chars().take(WIDTH).collect();
            writeln!(f, "  process {pid} ended by itself, {ending:?}: {last}")?;
        }
        Ok(())
    }
}
