//! What the operator uses and how late it is, over time: measured while a run goes on, and written
//! as CSV and as a plot again and again, so that a run that is cut off leaves what it has.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tokio::time::{Instant, sleep};

use crate::clock::{self, SECOND};
use crate::footprint::Footprint;
use crate::journal::{CallLine, JournalLine, JournalTail, LoggedStep};
use crate::plot;
use crate::stage::Stage;
use crate::watch_log::{ObjectVersion, WatchLog};

/// The interval of samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The number of samples between two writes of the files.
const WRITE_EVERY: usize = 6;

/// The first line of the CSV file.
const HEADER: &str = "seconds,pid,memory_kib,descriptors,threads,tasks,handled,latency_median_ms,\
                      latency_max_ms,unhandled,lag_ms\n";

/// One measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoadSample {
    /// Seconds from the first measurement.
    pub(crate) seconds: f64,
    pub(crate) pid: i32,
    pub(crate) footprint: Footprint,
    /// The edits that were handled since the last sample.
    pub(crate) handled: usize,
    /// Milliseconds from an edit to the end of the handler of changes for it.
    pub(crate) latency_median: u64,
    pub(crate) latency_max: u64,
    /// The objects with edits that are not handled yet.
    pub(crate) unhandled: usize,
    /// The age of the oldest of these edits, in milliseconds.
    pub(crate) lag: u64,
}

/// The edits of each object that are not handled yet.
#[derive(Debug, Default)]
struct OpenEdits {
    /// The handler of edits.
    handler: &'static str,
    objects: BTreeMap<String, EditedObject>,
    /// The last end of the handler of changes for each object: the state and the time.
    ends: BTreeMap<String, (String, u64)>,
    /// The latencies since the last sample, in microseconds.
    latencies: Vec<u64>,
}

#[derive(Debug, Default)]
struct EditedObject {
    /// The newest state.
    newest: String,
    /// The states that no call has seen yet, nor a later one, with the times of their edits.
    open: VecDeque<(String, u64)>,
}

/// The files of a run.
#[derive(Clone, Debug)]
pub(crate) struct SampleFiles {
    pub(crate) table: PathBuf,
    pub(crate) plot: PathBuf,
}

/// Measures for as long as this is polled.
pub(crate) async fn sample(
    stage: &Stage,
    log: &WatchLog<ObjectVersion>,
    files: &SampleFiles,
) -> io::Result<()> {
    let begun = Instant::now();
    let mut journal = JournalTail::open(&stage.journal)?;
    let mut edits = OpenEdits {
        handler: stage.tested.handler_of_edits(),
        ..OpenEdits::default()
    };
    let (mut seen, mut tasks) = (0, BTreeMap::<i32, usize>::new());
    let mut samples: Vec<LoadSample> = Vec::new();
    loop {
        sleep(SAMPLE_EVERY).await;
        if let Some(listed) = log.listed_since(seen) {
            edits.retain(&listed);
        }
        for version in log.since(seen) {
            edits.note(&version);
            seen += 1;
        }
        for line in journal.read()?.lines {
            match line {
                JournalLine::Call(call) => edits.note_call(&call),
                JournalLine::Probe(probe) => drop(tasks.insert(probe.pid, probe.tasks)),
            }
        }
        // A process that has just died has nothing to measure.
        let pid = stage.pids().await.first().copied();
        let footprint = pid.and_then(|pid| {
            let tasks = tasks.get(&pid).copied().unwrap_or_default();
            Footprint::of(pid, tasks).ok()
        });
        if let (Some(pid), Some(footprint)) = (pid, footprint) {
            samples.push(LoadSample {
                seconds: begun.elapsed().as_secs_f64(),
                pid,
                footprint,
                ..edits.take(clock::now())
            });
        }
        if samples.len().is_multiple_of(WRITE_EVERY) {
            files.write(&samples)?;
        }
    }
}

// === impl OpenEdits ===

impl OpenEdits {
    /// Forgets the objects that a list does not have: the watch has not seen their end.
    fn retain(&mut self, listed: &BTreeSet<String>) {
        self.objects.retain(|uid, _| listed.contains(uid));
        self.ends.retain(|uid, _| listed.contains(uid));
    }

    fn note(&mut self, version: &ObjectVersion) {
        if version.deleting {
            self.objects.remove(&version.uid);
            self.ends.remove(&version.uid);
            return;
        }
        let whole = &version.state.whole;
        let known = self.objects.entry(version.uid.clone()).or_default();
        if known.newest != *whole {
            known.newest.clone_from(whole);
            known.open.push_back((whole.clone(), version.at));
        }
        // The watch of the suite may be later than the operator.
        let ended = self.ends.get(&version.uid);
        let ended = ended.filter(|(state, at)| state == whole && *at > version.at);
        if let Some((_, ended)) = ended {
            self.latencies.extend(known.close(whole, *ended));
        }
    }

    /// Notes the end of a call: it handles the edit that it saw, and those before.
    fn note_call(&mut self, call: &CallLine) {
        let ended = matches!(call.step, LoggedStep::Success | LoggedStep::Failure);
        if !ended || call.handler != self.handler {
            return;
        }
        let end = (call.state.whole.clone(), call.at);
        self.ends.insert(call.uid.clone(), end);
        if let Some(known) = self.objects.get_mut(&call.uid) {
            self.latencies
                .extend(known.close(&call.state.whole, call.at));
        }
    }

    /// What is known since the last sample, without what the process uses.
    fn take(&mut self, now: u64) -> LoadSample {
        let mut latencies = std::mem::take(&mut self.latencies);
        latencies.sort_unstable();
        let open = self.objects.values();
        let open = open.filter_map(|it| it.open.front().map(|(_, edited)| *edited));
        let oldest = open.clone().min();
        let milliseconds = |time: u64| time * 1000 / SECOND;
        let at = |index: usize| latencies.get(index).copied().map_or(0, milliseconds);
        LoadSample {
            handled: latencies.len(),
            latency_median: at(latencies.len() / 2),
            latency_max: at(latencies.len().saturating_sub(1)),
            unhandled: open.count(),
            lag: oldest.map_or(0, |edited| milliseconds(now.saturating_sub(edited))),
            ..LoadSample::default()
        }
    }
}

// === impl EditedObject ===

impl EditedObject {
    /// Closes the edits up to this state, which was handled at that time; gives their latencies.
    fn close(&mut self, state: &str, at: u64) -> Vec<u64> {
        let seen = self.open.iter().rposition(|(open, _)| open == state);
        let count = seen.map_or(0, |seen| seen + 1);
        let closed = self.open.drain(..count);
        closed
            .map(|(_, edited)| at.saturating_sub(edited))
            .collect()
    }
}

// === impl SampleFiles ===

impl SampleFiles {
    fn write(&self, samples: &[LoadSample]) -> io::Result<()> {
        let mut table = HEADER.to_owned();
        for sample in samples {
            let uses = &sample.footprint;
            // Writing to a string does not fail.
            let _ = writeln!(
                table,
                "{:.0},{},{},{},{},{},{},{},{},{},{}",
                sample.seconds,
                sample.pid,
                uses.memory,
                uses.descriptors,
                uses.threads,
                uses.tasks,
                sample.handled,
                sample.latency_median,
                sample.latency_max,
                sample.unhandled,
                sample.lag
            );
        }
        replace(&self.table, &table)?;
        replace(&self.plot, &plot::of(samples))
    }
}

/// Replaces a file at once: the run may end at any moment.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, content)?;
    fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::watch_log::LoggedVersion as _;
    use crate::workload::CHANGED;

    fn version(at: u64, edit: u64) -> ObjectVersion {
        let object = json!({"metadata": {"uid": "u"}, "spec": {"edit": edit}});
        ObjectVersion {
            at,
            ..ObjectVersion::of(&object)
        }
    }

    fn ended(at: u64, edit: u64) -> CallLine {
        CallLine {
            at,
            pid: 1,
            born: 0,
            call: 0,
            step: LoggedStep::Success,
            handler: CHANGED.to_owned(),
            retry: 0,
            uid: "u".to_owned(),
            name: "w".to_owned(),
            version: 1,
            state: version(at, edit).state,
        }
    }

    #[test]
    fn the_latency_counts_from_an_edit_to_the_end_of_a_handler_that_saw_it_or_a_later_one() {
        let mut edits = OpenEdits {
            handler: CHANGED,
            ..OpenEdits::default()
        };
        edits.note(&version(SECOND, 1));
        edits.note(&version(2 * SECOND, 2));
        edits.note_call(&ended(3 * SECOND, 1));
        let sample = edits.take(4 * SECOND);
        assert_eq!((sample.handled, sample.unhandled, sample.lag), (1, 1, 2000));
        edits.note(&version(4 * SECOND, 3));
        assert_eq!(
            edits.take(5 * SECOND).lag,
            3000,
            "another edit hides no wait"
        );
        edits.note_call(&ended(6 * SECOND, 3));
        edits.note_call(&ended(7 * SECOND, 3));
        let sample = edits.take(8 * SECOND);
        assert_eq!((sample.handled, sample.latency_max), (2, 4000));
        assert_eq!((sample.unhandled, sample.lag), (0, 0));
    }

    #[test]
    fn an_object_that_is_gone_is_not_waited_for() {
        let object = json!({"metadata": {"uid": "u"}, "spec": {"edit": 1}});
        let mut edits = OpenEdits::default();
        edits.note(&ObjectVersion::logged(&object, false));
        assert_eq!(edits.take(SECOND).unhandled, 1);
        edits.note(&ObjectVersion::logged(&object, true));
        assert_eq!(edits.take(SECOND).unhandled, 0);

        edits.note(&version(SECOND, 1));
        edits.retain(&BTreeSet::from(["other".to_owned()]));
        assert_eq!(edits.take(2 * SECOND).unhandled, 0);
    }
}
