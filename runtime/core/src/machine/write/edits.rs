//! Edits: JSON patches for the state that they are made for, and whether that state was written.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Error, ObjectWrite, OnConflict, WritePhase, WriteResult,
    part::{ObjectPart, PartChange},
    version,
};
use crate::{
    machine::{effect::RequestReport, exchange::Exchanged, now::Now, request::PatchEndpoint},
    object::applied::shows_change,
};

// === impl ObjectWrite ===

impl ObjectWrite<'_> {
    /// Goes on with the first part that the edits change.
    pub(super) fn go_on_with_edits(&mut self, now: &Now) {
        while let Some(part) = ObjectPart::all(self.rules.status_endpoint).get(self.part) {
            match part.change(&self.known, self.body.as_ref(), &self.edits) {
                Err(message) => return self.end(Err(Error::EditPanicked(message))),
                Ok(Some(change)) => return self.send(WritePhase::Edit(change), now),
                Ok(None) => self.part += 1,
            }
        }
        match self.edited.take() {
            // Only edits that change something are sent: if the version is the same, another
            // client has undone them at once.
            Some(edited)
                if planted!(StrippedFinalizerSettled)
                    && version(&edited) == version(&self.first) =>
            {
                self.end(Ok(WriteResult::Unchanged));
            }
            Some(edited) => {
                let result = self.kept(&edited);
                self.end(Ok(result.unwrap_or(WriteResult::Written(edited))));
            }
            None => self.finish(None),
        }
    }

    pub(super) fn edit_answered(&mut self, change: PartChange, answer: Exchanged, now: &Now) {
        let rejected = match answer {
            Exchanged::Object(object) => {
                self.known = Arc::clone(&object);
                self.edited = Some(object);
                self.part += 1;
                return self.go_on_with_edits(now);
            }
            Exchanged::Gone if change.endpoint == PatchEndpoint::Status => {
                return self.send(WritePhase::IsStatusServed, now);
            }
            Exchanged::Conflict => None,
            Exchanged::Rejected(reason) => Some(reason),
            failure => return self.not_read(failure),
        };
        let unanswered = self.exchange.unanswered;
        let newer = WritePhase::NewerForEdit {
            change,
            rejected,
            unanswered,
        };
        self.pause_after_conflict(now);
        self.send(newer, now);
    }

    pub(super) fn newer_for_edit(
        &mut self,
        change: PartChange,
        rejected: Option<String>,
        unanswered: bool,
        answer: Exchanged,
        now: &Now,
    ) {
        let newer = match answer {
            Exchanged::Object(newer) => newer,
            failure => return self.not_read(failure),
        };
        if let Some(reason) = rejected
            && version(&newer) == version(&self.known)
        {
            return self.end(Err(Error::Rejected(reason)));
        }
        if self.rules.on_conflict == OnConflict::Report {
            return self.outdated(newer);
        }
        if self.is_conflict_unfounded(version(&self.known), &newer) {
            return self.reject_conflict();
        }
        // Without a newer version nothing was written, and no state follows that would show it.
        if !unanswered || version(&newer) == version(&self.known) || planted!(EditMadeTwice) {
            return self.edit_again(newer, now);
        }
        if shows_change(&self.known, &change.wanted, &newer) {
            return self.edit_confirmed(newer, now);
        }
        match version(&self.known) {
            // The patch tests the version of the state that it is made for, so it is either the
            // first write after that version or none.
            Some(_) => self.send(WritePhase::IsEdited { change, newer }, now),
            None => self.edit_again(newer, now),
        }
    }

    pub(super) fn edit_checked(
        &mut self,
        change: &PartChange,
        newer: Arc<Value>,
        answer: Exchanged,
        now: &Now,
    ) {
        match answer {
            Exchanged::Object(next) if shows_change(&self.known, &change.wanted, &next) => {
                self.edit_confirmed(newer, now);
            }
            Exchanged::Object(_) => self.edit_again(newer, now),
            Exchanged::Rejected(reason) => {
                self.report = Some(RequestReport::EditUnconfirmed(reason));
                self.edit_again(newer, now);
            }
            _ => {
                let reason = "the state after it is not known any more".to_owned();
                self.report = Some(RequestReport::EditUnconfirmed(reason));
                self.edit_again(newer, now);
            }
        }
    }

    pub(super) fn edit_confirmed(&mut self, newer: Arc<Value>, now: &Now) {
        self.known = Arc::clone(&newer);
        self.edited = Some(newer);
        self.part += 1;
        self.go_on_with_edits(now);
    }

    pub(super) fn edit_again(&mut self, newer: Arc<Value>, now: &Now) {
        self.adapt_progress(&newer);
        self.known = newer;
        self.go_on_with_edits(now);
    }
}
