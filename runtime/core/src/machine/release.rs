//! Removes our finalizer from an object that cannot be parsed, so that it can be deleted.

use serde_json::{Value, json};

use crate::machine::{
    answer::{Answer, ReleasableMetadata},
    effect::{RequestEffect, RequestMachine, RequestReport},
    exchange::{Exchange, Exchanged},
    now::Now,
    request::{AnswerNeed, ObjectRequest, OnForbidden, PatchContent, PatchEndpoint},
    write::Contention,
};

/// The removal of our finalizer from an object that is nested too deep to be read.
#[derive(Debug)]
pub struct ObjectRelease<'o> {
    uid: &'o str,
    finalizer: &'o str,
    exchange: Exchange,
    phase: ReleasePhase,
    /// The version for which the removal failed already.
    tried: Option<String>,
    contention: Contention,
}

/// The result of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseResult {
    /// The finalizer is removed, or the object is gone.
    Released,
    /// The object is not being deleted, or does not have the finalizer, or the lease ended.
    Left,
    /// The API server rejects the removal, for this reason.
    Rejected(String),
}

#[derive(Debug)]
enum ReleasePhase {
    Reading,
    Writing { patch: Value, version: String },
}

// === impl ObjectRelease ===

impl<'o> ObjectRelease<'o> {
    /// Releases the object with this uid from this finalizer.
    #[must_use]
    pub fn new(uid: &'o str, finalizer: &'o str, now: &Now) -> Self {
        Self {
            uid,
            finalizer,
            exchange: Exchange::begin(now),
            phase: ReleasePhase::Reading,
            tried: None,
            contention: Contention::default(),
        }
    }

    /// The removal, if the object is being deleted and has the finalizer.
    fn removal(&self, object: ReleasableMetadata) -> Option<ReleasePhase> {
        let mut kept = object.finalizers;
        let before = kept.len();
        kept.retain(|it| it != self.finalizer);
        if object.deletion_timestamp.is_none() || kept.len() == before {
            return None;
        }
        let version = object.resource_version;
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": object.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/metadata/finalizers", "value": kept},
        ]);
        Some(ReleasePhase::Writing { patch, version })
    }

    fn answered(&mut self, answer: Answer, now: &Now) -> Option<RequestEffect<ReleaseResult>> {
        let exchanged = match self.phase {
            ReleasePhase::Reading => {
                let on_forbidden = OnForbidden::RetryForEver;
                self.exchange
                    .read_answered(answer, self.uid, on_forbidden, now)
            }
            ReleasePhase::Writing { .. } => {
                let on_forbidden = OnForbidden::RetryForMinute { ends_at_stop: true };
                self.exchange.answered(answer, self.uid, on_forbidden, now)
            }
        };
        let phase = std::mem::replace(&mut self.phase, ReleasePhase::Reading);
        let result = match (phase, exchanged) {
            (phase, Exchanged::Again(pause)) => {
                self.phase = phase;
                return Some(RequestEffect::Wait(pause));
            }
            (phase, Exchanged::ListInstead(reason)) => {
                self.phase = phase;
                let report = RequestReport::ListedInstead(reason);
                return Some(RequestEffect::Report(report));
            }
            (ReleasePhase::Reading, Exchanged::Metadata(object)) => match self.removal(object) {
                Some(removal) => {
                    self.phase = removal;
                    self.exchange = self.exchange.next(now);
                    return None;
                }
                None => ReleaseResult::Left,
            },
            (ReleasePhase::Writing { .. }, Exchanged::Accepted | Exchanged::Gone) => {
                ReleaseResult::Released
            }
            (
                ReleasePhase::Writing { version, .. },
                Exchanged::Conflict | Exchanged::Rejected(_),
            ) if self.tried.as_ref() != Some(&version) => {
                self.tried = Some(version);
                self.exchange = self.exchange.next(now);
                return self.contention.count(now).map(RequestEffect::Wait);
            }
            (_, Exchanged::Conflict) => {
                ReleaseResult::Rejected("another writer changed the object meanwhile".to_owned())
            }
            (_, Exchanged::Rejected(reason)) => ReleaseResult::Rejected(reason),
            (_, Exchanged::Gone | Exchanged::LeaseEnded) => ReleaseResult::Left,
            (_, Exchanged::Object(_) | Exchanged::AsExpected(_))
            | (ReleasePhase::Reading, Exchanged::Accepted)
            | (ReleasePhase::Writing { .. }, Exchanged::Metadata(_)) => {
                ReleaseResult::Rejected("no answer to a release".to_owned())
            }
        };
        Some(RequestEffect::Done(result))
    }
}

impl RequestMachine for ObjectRelease<'_> {
    type Outcome = ReleaseResult;

    fn step(&mut self, answer: Option<Answer>, now: &Now) -> RequestEffect<ReleaseResult> {
        if let Some(answer) = answer
            && let Some(effect) = self.answered(answer, now)
        {
            return effect;
        }
        RequestEffect::Send
    }

    fn request(&self) -> ObjectRequest<'_> {
        match &self.phase {
            ReleasePhase::Reading => ObjectRequest::ReadMetadata(self.exchange.read_verb()),
            ReleasePhase::Writing { patch, .. } => ObjectRequest::Patch {
                endpoint: PatchEndpoint::Object,
                content: PatchContent::Json(patch),
                need: AnswerNeed::Nothing,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::machine::{answer::RequestFailure, request::ReadVerb};

    fn status(code: u16) -> Answer {
        Answer::Failed(RequestFailure::Status {
            code,
            message: "no".to_owned(),
            retry_after: None,
        })
    }

    fn held(version: usize) -> Answer {
        Answer::Metadata(ReleasableMetadata {
            uid: "u".to_owned(),
            resource_version: version.to_string(),
            deletion_timestamp: Some("2020-01-01T00:00:00Z".to_owned()),
            finalizers: vec!["ours".to_owned()],
        })
    }

    /// Plays a release; returns the pauses in milliseconds, the reads, and its result.
    fn play(
        answers: impl IntoIterator<Item = Answer>,
    ) -> (Vec<u128>, Vec<ReadVerb>, ReleaseResult) {
        let now = Now {
            wall: Timestamp::UNIX_EPOCH,
            steady: Duration::ZERO,
            seed: u64::MAX,
            stopping: false,
            running: true,
            epoch: 0,
        };
        let mut release = ObjectRelease::new("u", "ours", &now);
        let (mut answers, mut answer) = (answers.into_iter(), None);
        let (mut pauses, mut reads) = (Vec::new(), Vec::new());
        loop {
            match release.step(answer.take(), &now) {
                RequestEffect::Send => {
                    if let ObjectRequest::ReadMetadata(verb) = release.request() {
                        reads.push(verb);
                    }
                    answer = answers.next();
                }
                RequestEffect::Wait(pause) => pauses.push(pause.pause.as_millis()),
                RequestEffect::Report(_) => {}
                RequestEffect::Done(result) => return (pauses, reads, result),
            }
        }
    }

    #[test]
    fn a_release_for_which_others_are_faster_is_repeated_with_growing_pauses() {
        let conflicts = (5..9).flat_map(|version| [held(version), status(422)]);
        let (pauses, reads, result) = play(conflicts.chain([held(9), Answer::Accepted]));
        assert_eq!(pauses, [200, 400, 800]);
        assert_eq!(reads.len(), 5);
        assert_eq!(result, ReleaseResult::Released);
    }

    #[test]
    fn an_object_that_may_not_be_got_is_listed_and_released() {
        let (_, reads, result) = play([status(403), held(5), Answer::Accepted]);
        assert_eq!(reads, [ReadVerb::Get, ReadVerb::List]);
        assert_eq!(result, ReleaseResult::Released);
    }
}
