//! One request, sent again until its answer counts.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    background::Moment,
    machine::{
        answer::{Answer, FailureMeaning, ReleasableMetadata},
        effect::RequestPause,
        growing_pause::GrowingPause,
        now::Now,
        request::{OnForbidden, ReadVerb},
    },
    object::{ObjectView, resource_version::ResourceVersion},
};

/// The first pause before a request is sent again.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The time for which a forbidden write is sent again.
const FORBIDDEN_RETRIES: Duration = Duration::from_secs(50);

/// The requests that were sent until an answer counts.
#[derive(Debug)]
pub(super) struct Exchange {
    begun: Moment,
    /// The beginning of the time for which a forbidden write is sent again.
    forbidden: Option<Moment>,
    pauses: GrowingPause,
    /// The permission that is used to read the object.
    read_verb: ReadVerb,
    /// Whether the API server may have executed one of them without an answer.
    pub(super) unanswered: bool,
}

/// The result of an exchange, or the pause before the request is sent again.
#[derive(Debug)]
pub(super) enum Exchanged {
    Object(Arc<Value>),
    AsExpected(ResourceVersion),
    Metadata(ReleasableMetadata),
    Accepted,
    Gone,
    Conflict,
    Rejected(String),
    LeaseEnded,
    Again(RequestPause),
    /// The object may not be got, for this reason: it is listed instead, without a pause.
    ListInstead(String),
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn begin(now: &Now) -> Self {
        Self {
            begun: now.steady,
            forbidden: None,
            pauses: GrowingPause::new(FIRST_PAUSE, LONGEST_PAUSE),
            read_verb: ReadVerb::Get,
            unanswered: false,
        }
    }

    /// How the object is read.
    pub(super) fn read_verb(&self) -> ReadVerb {
        self.read_verb
    }

    /// The next request of the same write. The time for which a forbidden one is sent again goes on:
    /// otherwise an object that others write all the time would keep its worker for ever.
    pub(super) fn next(&self, now: &Now) -> Self {
        Self {
            forbidden: self.forbidden,
            read_verb: self.read_verb,
            ..Self::begin(now)
        }
    }

    /// The answer to a read. If the object may be neither got nor listed, both are tried again.
    pub(super) fn read_answered(
        &mut self,
        answer: Answer,
        uid: &str,
        on_forbidden: OnForbidden,
        now: &Now,
    ) -> Exchanged {
        if let Answer::Failed(failure) = &answer
            && let FailureMeaning::Forbidden(reason) = failure.meaning()
        {
            match self.read_verb {
                ReadVerb::Get => {
                    self.read_verb = ReadVerb::List;
                    return Exchanged::ListInstead(reason);
                }
                ReadVerb::List => self.read_verb = ReadVerb::Get,
            }
        }
        self.answered(answer, uid, on_forbidden, now)
    }

    pub(super) fn answered(
        &mut self,
        answer: Answer,
        uid: &str,
        on_forbidden: OnForbidden,
        now: &Now,
    ) -> Exchanged {
        let failure = match answer {
            Answer::LeaseEnded => return Exchanged::LeaseEnded,
            // A request that tests no version may be answered about another object of the name.
            Answer::Object(body)
                if ObjectView::new(&body).uid() != Some(uid) && !planted!(NamesakeNotCompared) =>
            {
                return Exchanged::Gone;
            }
            Answer::Metadata(metadata) if metadata.uid != uid => return Exchanged::Gone,
            Answer::Object(body) => return Exchanged::Object(body),
            Answer::AsExpected(version) => return Exchanged::AsExpected(version),
            Answer::Metadata(metadata) => return Exchanged::Metadata(metadata),
            Answer::Accepted => return Exchanged::Accepted,
            Answer::Failed(failure) => failure,
        };
        self.unanswered |= failure.may_be_executed();
        let (at_least, forbidden) = match failure.meaning() {
            FailureMeaning::Gone => return Exchanged::Gone,
            FailureMeaning::Conflict => return Exchanged::Conflict,
            FailureMeaning::Rejected(reason) => return Exchanged::Rejected(reason),
            FailureMeaning::Forbidden(reason) if self.is_given_up(on_forbidden, now) => {
                return Exchanged::Rejected(reason);
            }
            FailureMeaning::Forbidden(_) => (None, true),
            FailureMeaning::Transient { at_least } => (at_least, false),
        };
        Exchanged::Again(RequestPause {
            pause: self.pauses.next(at_least, now.chance()),
            ends_at_stop: forbidden
                && on_forbidden == OnForbidden::RetryForMinute { ends_at_stop: true },
            failure: Some(failure),
        })
    }

    /// Whether a request that the API server forbids is given up.
    fn is_given_up(&mut self, on_forbidden: OnForbidden, now: &Now) -> bool {
        match on_forbidden {
            _ if planted!(ForbiddenForEver) => false,
            OnForbidden::Reject => true,
            OnForbidden::RetryForEver => false,
            OnForbidden::RetryForMinute { ends_at_stop } => {
                let since = *self.forbidden.get_or_insert(self.begun);
                let elapsed = now.steady.saturating_sub(since);
                elapsed >= FORBIDDEN_RETRIES || (ends_at_stop && now.stopping)
            }
        }
    }
}
