//! Removes our finalizer from an object that cannot be parsed, so that it can be deleted.

use serde_json::{Value, json};

use crate::machine::{
    answer::{Answer, ReleasableMetadata},
    effect::{RequestEffect, RequestMachine},
    exchange::{Exchange, Exchanged},
    now::Now,
    request::{AnswerNeed, ObjectRequest, OnForbidden, PatchContent, PatchEndpoint},
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
        let on_forbidden = match self.phase {
            ReleasePhase::Reading => OnForbidden::RetryForEver,
            ReleasePhase::Writing { .. } => OnForbidden::RetryForMinute { ends_at_stop: true },
        };
        let exchanged = self.exchange.answered(answer, self.uid, on_forbidden, now);
        let phase = std::mem::replace(&mut self.phase, ReleasePhase::Reading);
        let result = match (phase, exchanged) {
            (phase, Exchanged::Again(pause)) => {
                self.phase = phase;
                return Some(RequestEffect::Wait(pause));
            }
            (ReleasePhase::Reading, Exchanged::Metadata(object)) => match self.removal(object) {
                Some(removal) => {
                    self.phase = removal;
                    self.exchange = Exchange::begin(now);
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
                self.exchange = Exchange::begin(now);
                return None;
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
            ReleasePhase::Reading => ObjectRequest::GetMetadata,
            ReleasePhase::Writing { patch, .. } => ObjectRequest::Patch {
                endpoint: PatchEndpoint::Object,
                content: PatchContent::Json(patch),
                need: AnswerNeed::Nothing,
            },
        }
    }
}
