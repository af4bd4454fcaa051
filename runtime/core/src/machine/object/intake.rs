//! The state that a call handles: of an event, of a planned call, or of the API server.

use std::sync::Arc;

use serde_json::Value;

use super::{
    AfterGone, AfterReport, Error, KeptState, NextCall, ObjectMachine, ObjectReport, Phase,
    Requests, Rest, version_of,
};
use crate::{
    cause::detect::{EventKind, ObjectHistory},
    machine::{
        memory::{BatchSummary, NewestSource, ObjectMemory},
        now::Now,
        object::EventPatch,
        pruned_fields::are_so,
        read::{ObjectRead, ReadResult},
        request::OnForbidden,
        write::{self, ObjectWrite, OnConflict, ReadBack, WriteResult, WriteRules},
    },
    object::{patch::ObjectPatch, resource_version::ResourceVersion},
};

/// The purpose of parsing the object of the newest event.
#[derive(Debug)]
pub(super) enum ParsePurpose {
    /// It is the newest state.
    Newest,
    /// It is the state of our last write, which a planned call goes on with.
    Planned,
}

/// The purpose of reading the object.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadPurpose {
    /// Whether a deletion event only means that it does not match the selectors any more.
    StillExists,
    /// The newest event has no text.
    Newest,
    /// A planned call goes on with it.
    Planned,
    /// A list shows it older than our last write. If the API server has that older state too, it
    /// was restored from a backup, and its versions grow from there.
    Restored,
}

/// The step after a newer state is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum AfterState {
    Event,
    Planned,
    EventHandlers,
    Turn,
    /// Nothing: the object is gone.
    Release,
}

// === impl ObjectMachine ===

impl<K> ObjectMachine<'_, K> {
    pub(super) fn begin(&mut self, memory: &mut ObjectMemory<K>, batch: BatchSummary, now: &Now) {
        if let Some(first) = batch.first {
            memory
                .history
                .get_or_insert_with(|| ObjectHistory::begin(first));
        }
        self.batch = batch;
        self.epoch = now.epoch;
        if self.rules.reconcile.is_some() && !self.batch.reasons.is_empty() {
            let reasons = std::mem::take(&mut self.batch.reasons);
            if !planted!(ChildChangeIgnored) {
                memory.reconcile().note(reasons);
            }
        }
        let Some(newest) = &self.batch.newest else {
            return self.after_event(memory, now);
        };
        let is_new = memory.is_new_state(newest);
        // Events from before the deletion may come after the answer which said that it is gone.
        // That answer may be wrong, if the API server does not serve the kind for a moment.
        let is_gone = memory.news == NewestSource::Gone && !planted!(GoneObjectHandled);
        if is_new && !is_gone {
            memory.news = match newest.kind {
                EventKind::Listed => NewestSource::List,
                EventKind::Changed | EventKind::Deleted => NewestSource::Watch,
            };
        }
        if newest.kind == EventKind::Deleted && self.rules.selective {
            self.send_read(memory, ReadPurpose::StillExists, now);
        } else if newest.kind == EventKind::Deleted {
            self.object_gone(memory, now);
        } else if is_new && newest.has_text && !is_gone {
            self.phase = Phase::ParseEvent(ParsePurpose::Newest);
        } else if is_new {
            self.send_read(memory, ReadPurpose::Newest, now);
        } else if newest.kind == EventKind::Listed {
            self.send_read(memory, ReadPurpose::Restored, now);
        } else {
            self.after_event(memory, now);
        }
    }

    /// Whether the newest event says that the object is gone.
    pub(super) fn is_deleted(&self) -> bool {
        let newest = self.batch.newest.as_ref();
        newest.is_some_and(|newest| newest.kind == EventKind::Deleted)
    }

    fn send_read(&mut self, memory: &mut ObjectMemory<K>, purpose: ReadPurpose, now: &Now) {
        let read = ObjectRead::new(self.rules.uid, now);
        self.go_on_with(memory, Requests::Read(read, purpose), None, now);
    }

    fn object_gone(&mut self, memory: &mut ObjectMemory<K>, now: &Now) {
        if self.rules.has_background {
            self.phase = Phase::StopBackground(AfterGone::CallEventHandlers);
        } else {
            self.call_event_handlers(memory, now);
        }
    }

    pub(super) fn event_parsed(
        &mut self,
        memory: &mut ObjectMemory<K>,
        purpose: ParsePurpose,
        parsed: Result<Option<Arc<Value>>, String>,
        now: &Now,
    ) {
        match (purpose, parsed) {
            (ParsePurpose::Newest, Ok(parsed)) => {
                self.current = parsed;
                self.after_event(memory, now);
            }
            (ParsePurpose::Planned, Ok(Some(parsed))) => {
                self.current = Some(parsed);
                self.call_event_handlers(memory, now);
            }
            (ParsePurpose::Planned, Ok(None) | Err(_)) => {
                self.send_read(memory, ReadPurpose::Planned, now);
            }
            (ParsePurpose::Newest, Err(reason)) => {
                self.fail(memory, Error::Unreadable(reason), now);
            }
        }
    }

    pub(super) fn read(
        &mut self,
        memory: &mut ObjectMemory<K>,
        purpose: ReadPurpose,
        result: ReadResult,
        now: &Now,
    ) {
        if matches!(result, ReadResult::Object(_)) && !planted!(ReadIsNoNews) {
            memory.news = match (memory.news, self.batch.newest.as_ref()) {
                (NewestSource::Gone | NewestSource::BeforePause, Some(newest))
                    if newest.kind == EventKind::Listed =>
                {
                    NewestSource::List
                }
                (NewestSource::Gone | NewestSource::BeforePause, _) => NewestSource::Watch,
                (known, _) => known,
            };
        }
        match (purpose, result) {
            (ReadPurpose::StillExists, ReadResult::Gone | ReadResult::LeaseEnded) => {
                self.object_gone(memory, now);
            }
            (ReadPurpose::StillExists, ReadResult::Object(_) | ReadResult::Unreadable(_)) => {
                self.forget(memory);
            }
            (ReadPurpose::Restored, ReadResult::Object(newest)) => {
                let version = version_of(&newest).map(ResourceVersion::new);
                // Our last write itself is what an older list makes us read.
                let is_own = version == memory.written && !planted!(OwnWriteTakenForBackup);
                let restored = memory.is_stale(version.as_ref()) && !is_own;
                self.current = Some(newest);
                if restored {
                    memory.written = None;
                }
                if restored && self.rules.has_background {
                    self.phase = Phase::ShowLatest {
                        replaces_newer: true,
                        then: AfterState::Event,
                    };
                } else {
                    self.after_event(memory, now);
                }
            }
            (ReadPurpose::Restored, _) => self.after_event(memory, now),
            (_, ReadResult::Unreadable(reason)) => {
                self.fail(memory, Error::Unreadable(reason), now);
            }
            (ReadPurpose::Newest, ReadResult::Object(newer)) => {
                self.wrote(memory, newer, AfterState::Event, now);
            }
            (ReadPurpose::Newest, _) => self.after_event(memory, now),
            (ReadPurpose::Planned, ReadResult::Object(newer)) => {
                self.wrote(memory, newer, AfterState::Planned, now);
            }
            (ReadPurpose::Planned, _) => self.call_event_handlers(memory, now),
        }
    }

    /// Goes on with an answer of the API server: all older events are redundant.
    pub(super) fn wrote(
        &mut self,
        memory: &mut ObjectMemory<K>,
        newer: Arc<Value>,
        then: AfterState,
        now: &Now,
    ) {
        if let Some(version) = version_of(&newer) {
            memory.written = Some(ResourceVersion::new(version));
        }
        self.current = Some(newer);
        if self.rules.has_background {
            self.phase = Phase::ShowLatest {
                replaces_newer: false,
                then,
            };
        } else {
            self.after_state(memory, then, now);
        }
    }

    /// Keeps the last state of an object that our write released. Events of earlier writes, and a
    /// requeue by a daemon that has ended, may still wait: without this state they would find an
    /// object to be released, and call the deletion handlers again.
    pub(super) fn released(&mut self, memory: &mut ObjectMemory<K>, last: Arc<Value>, now: &Now) {
        if let Some(version) = version_of(&last) {
            memory.written = Some(ResourceVersion::new(version));
        }
        if !planted!(GoneObjectHandled) {
            memory.news = NewestSource::Gone;
        }
        self.current = Some(last);
        if self.rules.has_background {
            self.phase = Phase::ShowLatest {
                // The API server answers with the version before the deletion.
                replaces_newer: true,
                then: AfterState::Release,
            };
        } else {
            self.after_state(memory, AfterState::Release, now);
        }
    }

    pub(super) fn after_state(
        &mut self,
        memory: &mut ObjectMemory<K>,
        then: AfterState,
        now: &Now,
    ) {
        match then {
            AfterState::Event => self.after_event(memory, now),
            AfterState::Planned => self.call_event_handlers(memory, now),
            AfterState::EventHandlers => self.after_event_handlers(memory, now),
            AfterState::Turn => self.next_turn(memory, now),
            AfterState::Release => {
                self.current = None;
                self.rest(memory, NextCall::AwaitChange);
            }
        }
    }

    /// Goes on with the state of a planned call, unless an event has brought another.
    fn after_event(&mut self, memory: &mut ObjectMemory<K>, now: &Now) {
        match memory.take_plan().filter(|_| self.current.is_none()) {
            Some(kept) => {
                self.planned = true;
                self.phase = Phase::ParseKept(kept);
            }
            None => self.call_event_handlers(memory, now),
        }
    }

    /// A state that was not kept is in the event of our last write, if that has just arrived;
    /// otherwise the API server is asked for the newest one.
    pub(super) fn kept_parsed(
        &mut self,
        memory: &mut ObjectMemory<K>,
        parsed: Option<Arc<Value>>,
        now: &Now,
    ) {
        let is_own_write = self.batch.newest.as_ref().is_some_and(|newest| {
            newest.has_text && newest.version.is_some() && newest.version == memory.written
        });
        match parsed {
            Some(parsed) => {
                self.current = Some(parsed);
                self.call_event_handlers(memory, now);
            }
            None if is_own_write => self.phase = Phase::ParseEvent(ParsePurpose::Planned),
            None => self.send_read(memory, ReadPurpose::Planned, now),
        }
    }

    pub(super) fn call_event_handlers(&mut self, memory: &mut ObjectMemory<K>, now: &Now) {
        if self.rules.needs_each_event {
            self.phase = Phase::EventHandlers;
        } else {
            self.after_event_handlers(memory, now);
        }
    }

    pub(super) fn event_handlers_called(
        &mut self,
        memory: &mut ObjectMemory<K>,
        called: Result<Option<EventPatch>, String>,
        now: &Now,
    ) {
        match called {
            Err(reason) => self.fail(memory, Error::Unreadable(reason), now),
            Ok(Some(EventPatch { known, patch })) if !patch.is_empty() && !self.is_deleted() => {
                let known = self.current.clone().unwrap_or(known);
                // The event of this write calls the handlers again. If a webhook stamps each write,
                // writing what is there already would never end.
                let is_so = !patch.has_edits() && are_so(patch.merge_patch(), &known);
                match is_so {
                    true => self.after_event_handlers(memory, now),
                    false => self.write_event_patch(memory, &known, patch, now),
                }
            }
            Ok(_) => self.after_event_handlers(memory, now),
        }
    }

    fn write_event_patch(
        &mut self,
        memory: &mut ObjectMemory<K>,
        known: &Arc<Value>,
        patch: ObjectPatch,
        now: &Now,
    ) {
        let rules = WriteRules {
            status_endpoint: self.rules.status_endpoint,
            on_conflict: OnConflict::Repeat,
            on_forbidden: OnForbidden::RetryForMinute { ends_at_stop: true },
            read_back: ReadBack::Always,
        };
        let write = ObjectWrite::new(self.rules.uid, known, patch, rules, now);
        self.go_on_with(memory, Requests::EventWrite(write), None, now);
    }

    pub(super) fn event_patch_written(
        &mut self,
        memory: &mut ObjectMemory<K>,
        result: Result<WriteResult, write::Error>,
        now: &Now,
    ) {
        match result {
            Ok(WriteResult::Written(newer) | WriteResult::Stripped(newer, _)) => {
                self.wrote(memory, newer, AfterState::EventHandlers, now);
            }
            Ok(
                WriteResult::Unchanged
                | WriteResult::AsExpected(_)
                | WriteResult::Outdated(_)
                | WriteResult::LeaseEnded,
            ) => self.after_event_handlers(memory, now),
            Ok(WriteResult::Gone) if planted!(GoneObjectHandled) => {
                self.after_event_handlers(memory, now);
            }
            // Its deletion event follows, and calls the event handlers, too.
            Ok(WriteResult::Gone) => {
                memory.news = NewestSource::Gone;
                self.current = None;
                self.rest(memory, NextCall::AwaitChange);
            }
            Err(error) => {
                let report = ObjectReport::EventPatchRejected(error);
                self.phase = Phase::Report(report, AfterReport::EventHandled);
            }
        }
    }

    pub(super) fn after_event_handlers(&mut self, memory: &mut ObjectMemory<K>, now: &Now) {
        if self.is_deleted() {
            return self.forget(memory);
        }
        if self.batch.requeued && self.current.is_none() {
            match memory.news {
                // The object was forgotten, and its last daemon or timer has ended.
                _ if memory.history.is_none() => {
                    self.phase = Phase::StopBackground(AfterGone::Forget);
                }
                NewestSource::Gone | NewestSource::BeforePause => {
                    self.rest(memory, NextCall::AwaitChange);
                }
                NewestSource::Watch | NewestSource::List => self.phase = Phase::ParseLatest,
            }
            return;
        }
        self.begin_turns(memory, now);
    }

    pub(super) fn begin_turns(&mut self, memory: &mut ObjectMemory<K>, now: &Now) {
        self.has_begun_turns = true;
        self.listed = memory.news == NewestSource::List;
        if self.planned && self.current.is_none() {
            // The object is gone, and its deletion event follows; or it cannot be read for now.
            let delay = self.error_delay(memory.failures.into());
            memory.failures = memory.failures.saturating_add(1);
            self.phase = Phase::Rest(Rest {
                next: NextCall::After(delay),
                keep: KeptState::Unread,
            });
            return;
        }
        if !self.rules.registry.handles_changes() && !self.rules.has_background {
            self.current = None;
        }
        self.next_turn(memory, now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{
        handler::registry::Registry,
        lifecycle::Lifecycle,
        machine::{
            answer::Answer,
            memory::NewestEvent,
            object::{ObjectEffect, ObjectInput, ObjectRules},
        },
        persistence::Persistence,
    };

    /// Whether version 5, our last write, is still known after a list that shows version 4, when
    /// the API server has this version.
    fn is_last_write_known(version: &str) -> bool {
        let (registry, persistence) = (Arc::new(Registry::default()), Arc::default());
        let persistence: Arc<Persistence> = persistence;
        let rules = ObjectRules {
            uid: "u",
            registry: &registry,
            persistence: &persistence,
            status_endpoint: false,
            selective: false,
            needs_each_event: false,
            has_background: false,
            reconcile: None,
            lifecycle: &Lifecycle::Asap,
            default_backoff: Duration::ZERO,
            error_delays: &[],
        };
        let now = Now {
            wall: Timestamp::UNIX_EPOCH,
            steady: Duration::ZERO,
            seed: 0,
            stopping: false,
            running: true,
            epoch: 0,
        };
        let mut memory: ObjectMemory<()> = ObjectMemory::default();
        memory.written = Some(ResourceVersion::new("5"));
        let older = NewestEvent {
            kind: EventKind::Listed,
            version: Some(ResourceVersion::new("4")),
            has_text: true,
        };
        let batch = BatchSummary {
            newest: Some(older),
            ..BatchSummary::default()
        };
        let mut machine = ObjectMachine::new(rules);
        machine.step(&mut memory, ObjectInput::Batch(batch), &now);
        assert!(matches!(machine.effect(), ObjectEffect::Send(_)));
        let object = json!({"metadata": {"uid": "u", "resourceVersion": version}});
        let answer = Answer::Object(Arc::new(object));
        machine.step(&mut memory, ObjectInput::Answer(answer), &now);
        memory.written.is_some()
    }

    #[test]
    fn only_an_api_server_with_an_older_state_was_restored_from_a_backup() {
        assert!(is_last_write_known("5"), "it has our last write");
        assert!(is_last_write_known("6"));
        assert!(!is_last_write_known("4"));
    }
}
