//! Evidence made by hand: one object that was handled as it should be, and stories with one flaw.

use std::collections::BTreeMap;

use super::{BrokenClaim, Claim, Evidence, check};
use crate::clock::SECOND;
use crate::footprint::Footprint;
use crate::journal::{CallLine, IndexedState, JournalContent, JournalLine, LoggedStep, ProbeLine};
use crate::operators::{OperatorLife, OperatorRole};
use crate::state::DigestedState;
use crate::tested_operator::TestedOperator;
use crate::watch_log::{ChildVersion, HandlerRecord, ObjectVersion, WatchLogContent};
use crate::workload::{
    CHANGED, GILDED, GOLD_SUBS, MADE, PARTS, RECONCILED, RESIZED, RESUMED, STEADY, SUBS, TICK,
};

const NAME: &str = "here/w1";
const PID: i32 = 7;
const REST: u64 = 1_000 * SECOND;

/// The evidence of one story.
pub(super) struct Story {
    pub(super) evidence: Evidence,
    calls: u64,
}

/// The claims that a story breaks.
pub(super) fn claims_of(story: &Story) -> Vec<Claim> {
    let mut claims: Vec<Claim> = story.broken().into_iter().map(|it| it.claim).collect();
    claims.sort();
    claims.dedup();
    claims
}

fn state(edit: u64) -> DigestedState {
    DigestedState {
        whole: format!("whole {edit}"),
        size: edit.to_string(),
        gold: false,
        edit,
    }
}

fn version(number: u64, edit: u64, base: Option<u64>) -> ObjectVersion {
    ObjectVersion {
        at: 0,
        uid: "u1".to_owned(),
        name: "w1".to_owned(),
        version: number,
        state: state(edit),
        base: base.map(state),
        records: BTreeMap::new(),
        held: true,
        deleting: false,
    }
}

/// The record of a handler that was called once.
fn record(started: u64, ended: Option<u64>) -> HandlerRecord {
    let time = |second: u64| format!("1970-01-01T00:00:{second:02}.000000+00:00");
    HandlerRecord {
        started: time(started),
        ended: ended.map(time),
        attempts: 1,
    }
}

fn child(number: u64, edit: u64) -> ChildVersion {
    ChildVersion {
        at: 0,
        uid: format!("c{number}"),
        namespace: "here".to_owned(),
        name: format!("w1-u1-{number}"),
        version: 15,
        owner: "u1".to_owned(),
        number,
        edit: Some(edit),
        gone: false,
    }
}

fn life(pid: i32, started: u64) -> OperatorLife {
    OperatorLife {
        pid,
        role: OperatorRole::Main,
        started,
        ended: None,
        ending: None,
        stops: Vec::new(),
        log: None,
        by_itself: false,
        panicked: false,
    }
}

impl Story {
    /// One object that was created, handled by all handlers, and came to rest.
    pub(super) fn complete() -> Self {
        let rest = version(20, 1, Some(1));
        let mut story = Self {
            evidence: Evidence {
                lives: vec![life(PID, 0)],
                pids: vec![PID],
                quiet_from: REST / 2,
                rest: REST,
                watch: WatchLogContent {
                    versions: vec![version(10, 1, None), rest.clone()],
                    ..WatchLogContent::default()
                },
                widgets: [(NAME.to_owned(), rest)].into(),
                ..Evidence::default()
            },
            calls: 0,
        };
        for (number, handler) in [MADE, CHANGED, RESIZED].into_iter().enumerate() {
            story.call(handler, 10, 1, number as u64, LoggedStep::Success);
        }
        let parent = story.open(PARTS, 10, 1, 10 * SECOND);
        for (number, handler) in SUBS.into_iter().enumerate() {
            story.call(handler, 10, 1, 11 + number as u64, LoggedStep::Success);
        }
        story.close(parent, 20 * SECOND, LoggedStep::Success);
        story.call(RECONCILED, 19, 1, 20, LoggedStep::Success);
        story = story.with_child(0, 1);
        story.open(STEADY, 20, 1, 21 * SECOND);
        let last = REST / SECOND - 2;
        story.call(TICK, 20, 1, last, LoggedStep::Success);
        story.probe("whole 1");
        story
    }

    /// The same object with the label of the filtered handlers, which were called for it.
    pub(super) fn gold() -> Self {
        let mut story = Self::complete();
        story.call(GILDED, 10, 1, 5, LoggedStep::Success);
        for (number, handler) in GOLD_SUBS.into_iter().enumerate() {
            story.call(handler, 10, 1, 15 + number as u64, LoggedStep::Success);
        }
        for object in story.evidence.widgets.values_mut() {
            object.state.gold = true;
            object.base = Some(object.state.clone());
        }
        story
    }

    /// The same object, handled by one function that keeps no records on it.
    pub(super) fn without_records() -> Self {
        let mut story = Self::complete();
        story.evidence.tested = TestedOperator::Controller;
        let shared = |line: &JournalLine| matches!(line, JournalLine::Call(call) if call.handler == RECONCILED);
        story.evidence.journal.lines.retain(shared);
        for object in story.evidence.widgets.values_mut() {
            object.base = None;
        }
        story
    }

    /// That function has handled another state after the final one.
    pub(super) fn reconciled_other_state_last(mut self) -> Self {
        self.call(RECONCILED, 21, 2, 30, LoggedStep::Success);
        self
    }

    /// The process died in a call for a state without children.
    pub(super) fn killed_in_call_without_children(mut self) -> Self {
        self.open(RECONCILED, 21, 0, 30 * SECOND);
        self.evidence.lives[0].ended = Some(60 * SECOND);
        self
    }

    pub(super) fn broken(&self) -> Vec<BrokenClaim> {
        check(&self.evidence)
    }

    /// Without the calls of a handler.
    pub(super) fn without(mut self, handler: &str) -> Self {
        let other = |line: &JournalLine| match line {
            JournalLine::Call(call) => call.handler != handler,
            JournalLine::Probe(_) => true,
        };
        self.evidence.journal.lines.retain(other);
        self
    }

    /// With a child at rest.
    pub(super) fn with_child(mut self, number: u64, edit: u64) -> Self {
        let child = child(number, edit);
        self.evidence.children.insert(child.uid.clone(), child);
        self
    }

    /// A child was deleted after the last call.
    pub(super) fn child_deleted(mut self, number: u64) -> Self {
        self.evidence.child_watch.versions.push(ChildVersion {
            at: 50 * SECOND,
            version: 25,
            gone: true,
            ..child(number, 1)
        });
        self
    }

    /// The object has another state at the end.
    pub(super) fn edited(mut self) -> Self {
        self.rest_at(version(30, 2, Some(2)));
        self.probe("whole 2");
        self.evidence.children.clear();
        self.with_child(0, 2).with_child(1, 2)
    }

    /// The object had another state for a while, which one handler has handled; it has returned.
    pub(super) fn handled_other_state_last(mut self) -> Self {
        self.call(CHANGED, 21, 2, 30, LoggedStep::Success);
        let mut recorded = version(22, 2, Some(1));
        recorded
            .records
            .insert(CHANGED.to_owned(), record(30, Some(31)));
        self.evidence.watch.versions.push(recorded);
        self.rest_at(version(23, 1, Some(1)));
        self
    }

    /// The process died, and the versions with records are of this second.
    pub(super) fn died_and_recorded_at(mut self, died: u64, recorded: u64) -> Self {
        self.evidence.lives[0].ended = Some(died * SECOND);
        let versions = self.evidence.watch.versions.iter_mut();
        for version in versions.filter(|it| !it.records.is_empty()) {
            version.at = recorded * SECOND;
        }
        self
    }

    /// The object is gone, and was held before.
    pub(super) fn gone_unreleased(mut self) -> Self {
        self.evidence.widgets.clear();
        self
    }

    /// The last versions of the object are of its deletion, each with or without the finalizer.
    pub(super) fn deleting(mut self, held: &[bool]) -> Self {
        for (number, held) in (30..).zip(held) {
            self.evidence.watch.versions.push(ObjectVersion {
                held: *held,
                deleting: true,
                ..version(number, 1, Some(1))
            });
        }
        self
    }

    pub(super) fn repeated_after_record(mut self, handler: &str) -> Self {
        self.next_process();
        self.call(handler, 20, 1, 30, LoggedStep::Success);
        self
    }

    /// A process dies after it has called the handler for the second edit, and the record on the
    /// object is still that of an earlier call, or one with the end of this call.
    pub(super) fn repeated_beside_record_of(mut self, handler: &str, second: u64) -> Self {
        for (number, end) in [(21, 20), (22, second)] {
            let mut recorded = version(number, 2, Some(1));
            let key = handler.replace('/', ".");
            recorded.records.insert(key, record(20, Some(end)));
            self.evidence.watch.versions.push(recorded);
        }
        self.call(handler, 21, 2, 22, LoggedStep::Success);
        self.next_process();
        self.call(handler, 22, 2, 30, LoggedStep::Success);
        self
    }

    /// The handler was called for the second edit, and its end is recorded. The next version is the
    /// one for which it is called again, by the next process.
    pub(super) fn repeated_after(mut self, handler: &str, next: ObjectVersion) -> Self {
        let mut recorded = version(22, 2, Some(1));
        let key = handler.replace('/', ".");
        recorded.records.insert(key, record(21, Some(22)));
        let number = next.version;
        let versions = &mut self.evidence.watch.versions;
        versions.extend([version(21, 2, Some(1)), recorded, next]);
        self.call(handler, 21, 2, 22, LoggedStep::Success);
        self.next_process();
        self.call(handler, number, 2, 50, LoggedStep::Success);
        self
    }

    /// The handler was called for the second edit, and its end is recorded; the third edit was made
    /// and reverted, and these states counted as handled then. The handler is called again.
    pub(super) fn missed_third_edit(self, handler: &str, bases: &[u64]) -> Self {
        let bases = bases.iter().copied();
        let last = bases.clone().next_back().unwrap_or(1);
        let mut story = self.repeated_after(handler, version(30, 2, Some(last)));
        let versions = &mut story.evidence.watch.versions;
        versions.push(version(23, 3, Some(1)));
        versions.extend(
            (24..)
                .zip(bases)
                .map(|(number, base)| version(number, 3, Some(base))),
        );
        story
    }

    /// A version of the second edit with a record, or with another last handled state.
    pub(super) fn with_record_of(handler: &str, started: u64, ended: Option<u64>) -> ObjectVersion {
        let mut next = version(23, 2, Some(1));
        let record = record(started, ended);
        next.records.insert(handler.replace('/', "."), record);
        next
    }

    /// The same with this last handled state.
    pub(super) fn with_base(edit: u64) -> ObjectVersion {
        version(23, 2, Some(edit))
    }

    /// A process dies after a call for the second edit, that edit is reverted, and the next process
    /// notes that there is nothing to do for the handler. Then the edit is made again.
    pub(super) fn reverted_after_death(mut self, handler: &str, attempts: u64) -> Self {
        let mut noted = version(22, 1, Some(1));
        let nothing_to_do = HandlerRecord {
            attempts,
            ..record(22, Some(22))
        };
        noted.records.insert(handler.to_owned(), nothing_to_do);
        let versions = &mut self.evidence.watch.versions;
        versions.extend([version(21, 2, Some(1)), noted, version(23, 2, Some(1))]);
        self.call(handler, 21, 2, 22, LoggedStep::Success);
        self.next_process();
        self.call(handler, 23, 2, 30, LoggedStep::Success);
        self
    }

    pub(super) fn sub_repeated_beside_record(mut self, handler: &str) -> Self {
        let mut recorded = version(15, 1, None);
        recorded
            .records
            .insert(handler.replace('/', "."), record(15, Some(15)));
        self.evidence.watch.versions.push(recorded);
        self.call(handler, 15, 1, 30, LoggedStep::Success);
        self
    }

    pub(super) fn repeated_in_one_process(mut self, handler: &str) -> Self {
        self.call(handler, 10, 1, 30, LoggedStep::Success);
        self
    }

    pub(super) fn repeated_by_the_next_process(mut self, handler: &str) -> Self {
        self.next_process();
        self.call(handler, 10, 1, 30, LoggedStep::Success);
        self
    }

    pub(super) fn resumed_twice(mut self) -> Self {
        self.call(RESUMED, 20, 1, 30, LoggedStep::Success);
        self.call(RESUMED, 20, 1, 32, LoggedStep::Success);
        self
    }

    /// The handler of children was called once more.
    pub(super) fn reconciled_at(mut self, second: u64) -> Self {
        self.call(RECONCILED, 20, 1, second, LoggedStep::Success);
        self
    }

    /// With a rival that lives from one second to another.
    pub(super) fn with_rival(mut self, from: u64, to: u64) -> Self {
        let rival = OperatorLife {
            role: OperatorRole::Rival,
            ended: Some(to * SECOND),
            ..life(PID - 1, from * SECOND)
        };
        self.evidence.lives.insert(0, rival);
        self
    }

    /// Two calls at once, for a state that comes before all others.
    pub(super) fn overlapping(mut self, one: &str, other: &str) -> Self {
        let first = self.open(one, 5, 0, 40 * SECOND);
        let second = self.open(other, 5, 0, 41 * SECOND);
        self.close(first, 42 * SECOND, LoggedStep::Cut);
        self.close(second, 43 * SECOND, LoggedStep::Cut);
        self
    }

    pub(super) fn with_second_daemon(mut self) -> Self {
        self.open(STEADY, 20, 1, 30 * SECOND);
        self
    }

    pub(super) fn with_endless_call(mut self) -> Self {
        self.open(CHANGED, 20, 3, 30 * SECOND);
        self
    }

    pub(super) fn with_stale_index(mut self) -> Self {
        self.probe("whole 0");
        self
    }

    pub(super) fn with_record_at_rest(mut self) -> Self {
        let mut rest = version(30, 1, Some(1));
        rest.records.insert("made".to_owned(), record(20, None));
        self.rest_at(rest);
        self
    }

    pub(super) fn with_growth(mut self) -> Self {
        let before = Footprint::default();
        let after = Footprint {
            descriptors: 100,
            ..before
        };
        self.evidence.footprints = Some((before, after));
        self
    }

    /// The process dies and another one takes over, with the daemon and the timer.
    fn next_process(&mut self) {
        self.evidence.lives[0].ended = Some(25 * SECOND);
        self.evidence.lives.push(life(PID + 1, 26 * SECOND));
        self.evidence.pids = vec![PID + 1];
        self.open(STEADY, 20, 1, 27 * SECOND);
        self.probe("whole 1");
    }

    fn rest_at(&mut self, rest: ObjectVersion) {
        self.evidence.watch.versions.push(rest.clone());
        self.evidence.widgets.insert(NAME.to_owned(), rest);
    }

    fn probe(&mut self, whole: &str) {
        let pid = self.evidence.pids[0];
        let probe = ProbeLine {
            at: REST,
            pid,
            tasks: 1,
            index: [(NAME.to_owned(), IndexedState::Digest(whole.to_owned()))].into(),
        };
        self.evidence.journal.lines.push(JournalLine::Probe(probe));
    }

    /// A call of one second that begins at this second.
    fn call(&mut self, handler: &str, version: u64, edit: u64, second: u64, step: LoggedStep) {
        let line = self.open(handler, version, edit, second * SECOND);
        self.close(line, second * SECOND + SECOND / 2, step);
    }

    fn open(&mut self, handler: &str, version: u64, edit: u64, at: u64) -> CallLine {
        let pid = self.evidence.lives.last().map_or(PID, |life| life.pid);
        self.calls += 1;
        let line = CallLine {
            at,
            pid,
            born: 0,
            call: self.calls,
            step: LoggedStep::Begin,
            handler: handler.to_owned(),
            retry: 0,
            uid: "u1".to_owned(),
            name: "w1".to_owned(),
            version,
            state: state(edit),
        };
        let content: &mut JournalContent = &mut self.evidence.journal;
        content.lines.push(JournalLine::Call(line.clone()));
        line
    }

    fn close(&mut self, line: CallLine, at: u64, step: LoggedStep) {
        let line = CallLine { at, step, ..line };
        self.evidence.journal.lines.push(JournalLine::Call(line));
    }
}
