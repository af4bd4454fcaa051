//! Merge patches: first the status, if it has an endpoint of its own, then the rest.

use std::sync::Arc;

use serde_json::json;

use super::{
    Contention, ObjectWrite, OnConflict, ReadBack, WriteAnswer, WritePhase, WriteResult, dropped,
    guard::{guard, joined, unguard},
    version,
};
use crate::{
    machine::{effect::RequestReport, exchange::Exchanged, now::Now},
    object::patch::apply_merge,
};

// === impl ObjectWrite ===

impl ObjectWrite<'_> {
    pub(super) fn begin(&mut self, now: &Now) {
        match &mut self.status {
            Some(status) => {
                let version = version(&self.known);
                let version = version.filter(|_| !planted!(StatusTestsNoVersion));
                guard(status, self.uid, version);
                self.send(WritePhase::Status, now);
            }
            None => self.go_on_with_body(now),
        }
    }

    /// Goes on with the rest: a merge patch, or a JSON patch if there are edits.
    pub(super) fn go_on_with_body(&mut self, now: &Now) {
        if !self.edits.is_empty() {
            return self.go_on_with_edits(now);
        }
        if self.body.is_none() {
            return self.finish(None);
        }
        let written = match &self.status_answer {
            Some(WriteAnswer::AsExpected(version)) => Some(version.to_string()),
            Some(WriteAnswer::Object(_)) | None => version(&self.known).map(str::to_owned),
        };
        self.guard_body(written.as_deref());
        if let (Some(body), Some(WriteAnswer::AsExpected(_)), Some(status)) =
            (&self.body, &self.status_answer, &self.status)
        {
            self.both = Some(joined(body, status));
        }
        self.send(WritePhase::Body, now);
    }

    /// Makes the API server compare the uid and the version before it merges the patch: a request
    /// that it executes long after its client has given up must not undo what was written since.
    fn guard_body(&mut self, version: Option<&str>) {
        let version = version.filter(|_| !planted!(BodyTestsNoVersion));
        if let Some(body) = &mut self.body {
            guard(body, self.uid, version);
        }
    }

    pub(super) fn status_answered(&mut self, answer: Exchanged, now: &Now) {
        match answer {
            Exchanged::Object(object) => {
                self.report = dropped(self.status.as_ref(), &object);
                // The next request starts from a state that may be unexpected.
                self.rules.read_back = ReadBack::Always;
                self.known = Arc::clone(&object);
                self.status_written(WriteAnswer::Object(object), now);
            }
            Exchanged::AsExpected(version) => {
                self.status_written(WriteAnswer::AsExpected(version), now);
            }
            Exchanged::Gone => self.send(WritePhase::IsStatusServed, now),
            Exchanged::Conflict => {
                if self.exchange.unanswered {
                    self.complete_in_any_case();
                }
                self.pause_after_conflict(now);
                self.send(WritePhase::NewerForStatus, now);
            }
            failure => self.not_accepted(failure, now),
        }
    }

    /// The status is written, or may be. Its notes are encoded for the last handled state in the
    /// rest, and cannot be read without it.
    fn complete_in_any_case(&mut self) {
        self.rules.on_conflict = OnConflict::Repeat;
    }

    pub(super) fn status_written(&mut self, answer: WriteAnswer, now: &Now) {
        self.complete_in_any_case();
        self.contention = Contention::default();
        self.status_answer = Some(answer);
        self.status.iter_mut().for_each(unguard);
        self.go_on_with_body(now);
    }

    pub(super) fn newer_for_status(&mut self, answer: Exchanged, now: &Now) {
        let newer = match answer {
            Exchanged::Object(newer) => newer,
            failure => return self.not_read(failure),
        };
        if self.rules.on_conflict == OnConflict::Report {
            return self.outdated(newer);
        }
        let tested = self.status.as_ref().and_then(version);
        if self.is_conflict_unfounded(tested, &newer) {
            return self.reject_conflict();
        }
        self.adapt_progress(&newer);
        match &mut self.status {
            Some(status) => {
                guard(status, self.uid, version(&newer));
                self.send(WritePhase::Status, now);
            }
            None => self.go_on_with_body(now),
        }
    }

    /// The endpoint of the status was not found: the object is gone, or has no such endpoint.
    pub(super) fn status_endpoint_checked(&mut self, answer: &Exchanged, now: &Now) {
        if matches!(answer, Exchanged::Gone) {
            return self.end(Ok(WriteResult::Gone));
        }
        self.report = Some(RequestReport::NoStatusEndpoint);
        self.rules.status_endpoint = false;
        if let Some(mut status) = self.status.take_if(|_| self.status_answer.is_none()) {
            unguard(&mut status);
            apply_merge(self.body.get_or_insert_with(|| json!({})), &status);
        }
        self.part = 0;
        self.go_on_with_body(now);
    }

    pub(super) fn body_answered(&mut self, answer: Exchanged, now: &Now) {
        match answer {
            Exchanged::Object(object) => {
                self.report = dropped(self.body.as_ref(), &object);
                self.finish(Some(WriteAnswer::Object(object)));
            }
            Exchanged::AsExpected(version) => self.finish(Some(WriteAnswer::AsExpected(version))),
            Exchanged::Conflict => {
                self.pause_after_conflict(now);
                self.send(WritePhase::Conflict, now);
            }
            failure => self.not_accepted(failure, now),
        }
    }

    /// Writes the merge patch on top of the newer state, unless conflicts are reported.
    pub(super) fn newer_for_body(&mut self, answer: Exchanged, now: &Now) {
        let newer = match answer {
            Exchanged::Object(newer) => newer,
            failure => return self.not_read(failure),
        };
        if self.rules.on_conflict == OnConflict::Report {
            return self.outdated(newer);
        }
        let tested = self.body.as_ref().and_then(version);
        if self.is_conflict_unfounded(tested, &newer) {
            return self.reject_conflict();
        }
        self.adapt_progress(&newer);
        if self.body.is_none() {
            self.known = newer;
            return self.finish(None);
        }
        self.guard_body(version(&newer));
        self.send(WritePhase::Body, now);
    }
}
