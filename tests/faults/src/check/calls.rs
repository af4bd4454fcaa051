//! Calls, put together from the lines of the journal.

use std::collections::BTreeMap;

use super::Evidence;
use crate::clock::SECOND;
use crate::journal::{CallLine, LoggedStep};
use crate::operators::{OperatorLife, OperatorRole};
use crate::state::DigestedState;
use crate::watch_log::ObjectVersion;
use crate::workload::{MADE, NOTICED, RELEASED, RESIZED, STEADY, TICK};

/// The time after the death of a process in which its last write may appear.
const LATE_WRITE: u64 = 2 * SECOND;

/// One call of one handler.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(super) begin: &'a CallLine,
    /// The last step with its time, unless the process died or the call goes on.
    pub(super) end: Option<(u64, LoggedStep)>,
    /// The end of the call, or of its process; none if it goes on.
    pub(super) over: Option<u64>,
    pub(super) role: OperatorRole,
    /// The end of its process; none if it goes on.
    pub(super) died: Option<u64>,
}

/// All calls by object and handler, each in the order of their begins.
pub(super) struct Calls<'a> {
    by_handler: BTreeMap<&'a str, BTreeMap<&'a str, Vec<Call<'a>>>>,
    /// The versions of each object in their order.
    versions: BTreeMap<&'a str, Vec<&'a ObjectVersion>>,
}

// === impl Calls ===

impl<'a> Calls<'a> {
    pub(super) fn of(evidence: &'a Evidence) -> Self {
        let mut open: BTreeMap<(i32, u64, u64), Call<'a>> = BTreeMap::new();
        for line in evidence.journal.calls() {
            let key = (line.pid, line.born, line.call);
            if line.step == LoggedStep::Begin {
                let life = life_of(line, &evidence.lives);
                let call = Call {
                    begin: line,
                    end: None,
                    over: life.and_then(|life| life.ended),
                    role: life.map_or(OperatorRole::Main, |life| life.role),
                    died: life.and_then(|life| life.ended),
                };
                open.insert(key, call);
            } else if let Some(call) = open.get_mut(&key) {
                call.end = Some((line.at, line.step));
                call.over = Some(line.at);
            }
        }
        let mut by_handler: BTreeMap<_, BTreeMap<_, Vec<Call<'a>>>> = BTreeMap::new();
        for call in open.into_values() {
            let (uid, handler) = (call.begin.uid.as_str(), call.begin.handler.as_str());
            let of_object = by_handler.entry(uid).or_default();
            of_object.entry(handler).or_default().push(call);
        }
        for calls in by_handler.values_mut().flat_map(BTreeMap::values_mut) {
            calls.sort_by_key(|call| call.begin.at);
        }
        let mut versions: BTreeMap<_, Vec<&'a ObjectVersion>> = BTreeMap::new();
        for version in &evidence.watch.versions {
            versions
                .entry(version.uid.as_str())
                .or_default()
                .push(version);
        }
        for versions in versions.values_mut() {
            versions.sort_by_key(|version| version.version);
        }
        Self {
            by_handler,
            versions,
        }
    }

    /// The versions of one object.
    pub(super) fn versions(&self, uid: &str) -> &[&'a ObjectVersion] {
        self.versions.get(uid).map_or(&[], Vec::as_slice)
    }

    /// One version of an object, if it was watched.
    pub(super) fn version(&self, uid: &str, version: u64) -> Option<&'a ObjectVersion> {
        let mut versions = self.versions(uid).iter().copied();
        versions.find(|it| it.version == version)
    }

    /// Whether a version has a record of the end of a call.
    pub(super) fn shows_end(&self, call: &Call<'_>, version: u64) -> bool {
        let shown = self.version(&call.begin.uid, version);
        let shown = shown.and_then(|it| it.end_of(&call.begin.handler));
        shown.is_some() && shown != self.end_before(call)
    }

    /// The recorded end of a former call, for another state: it stays until this call has ended.
    fn end_before(&self, call: &Call<'_>) -> Option<&str> {
        let mut versions = self.versions(&call.begin.uid).iter().rev();
        let seen = versions.find(|it| it.version <= call.begin.version);
        seen.and_then(|it| it.end_of(&call.begin.handler))
    }

    /// The objects that were there, each by its uid.
    pub(super) fn uids(&self) -> impl Iterator<Item = &'a str> {
        self.versions.keys().copied()
    }

    /// The first version that records the end of a call: its record, or the base that its cycle
    /// left. What is written long after the death of its process is of another one.
    pub(super) fn recorded_at(&self, call: &Call<'_>) -> Option<u64> {
        let handler = call.begin.handler.as_str();
        let end_before = self.end_before(call);
        let mut base: Option<&DigestedState> = None;
        let is_of_process = |version: &ObjectVersion| {
            let died = call.died.map(|died| died + LATE_WRITE);
            died.is_none_or(|died| version.at <= died)
        };
        for version in self.versions(&call.begin.uid) {
            if version.version > call.begin.version && is_of_process(version) {
                let end = version.end_of(handler);
                if end.is_some() && end != end_before {
                    return Some(version.version);
                }
                // With records left, a base does not say that all handlers have ended on it.
                let moved = version.base.as_ref() != base && !version.has_open_records();
                let fits = |base: &DigestedState| {
                    scope(handler, base) == scope(handler, &call.begin.state)
                };
                if moved && version.base.as_ref().is_some_and(fits) {
                    return Some(version.version);
                }
            }
            base = version.base.as_ref();
        }
        None
    }

    /// The calls of one handler for one object.
    pub(super) fn of_handler(&self, uid: &str, handler: &str) -> &[Call<'a>] {
        let calls = self.by_handler.get(uid).and_then(|it| it.get(handler));
        calls.map_or(&[], Vec::as_slice)
    }

    /// The calls for one object of all handlers but daemons, timers and those of watch events.
    pub(super) fn of_turns(&self, uid: &str) -> impl Iterator<Item = &Call<'a>> {
        let handlers = self.by_handler.get(uid).into_iter().flatten();
        let in_turns = |handler| !matches!(handler, NOTICED | STEADY | TICK);
        let handlers = handlers.filter(move |(handler, _)| in_turns(**handler));
        handlers.flat_map(|(_, calls)| calls)
    }

    /// All calls, grouped by object and handler.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&'a str, &'a str, &[Call<'a>])> {
        self.by_handler.iter().flat_map(|(uid, handlers)| {
            let handlers = handlers.iter();
            handlers.map(|(handler, calls)| (*uid, *handler, calls.as_slice()))
        })
    }
}

/// The life of the process that wrote a line.
pub(super) fn life_of<'a>(line: &CallLine, lives: &'a [OperatorLife]) -> Option<&'a OperatorLife> {
    let mut lives = lives.iter().rev();
    lives.find(|life| life.pid == line.pid && life.started <= line.at)
}

// === impl Call ===

impl Call<'_> {
    /// Whether the handler is not to be called again for the state.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self.end,
            Some((_, LoggedStep::Success | LoggedStep::Failure))
        )
    }

    /// Whether both calls are of one process.
    pub(super) fn shares_process(&self, other: &Self) -> bool {
        (self.begin.pid, self.begin.born) == (other.begin.pid, other.begin.born)
    }
}

/// The part of a state that counts for a handler.
pub(super) fn scope<'a>(handler: &str, state: &'a DigestedState) -> &'a str {
    match handler {
        MADE | RELEASED => "",
        RESIZED => &state.size,
        _ => &state.whole,
    }
}
