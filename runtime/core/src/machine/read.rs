//! Reads the newest state of one object.

use std::sync::Arc;

use serde_json::Value;

use crate::machine::{
    answer::Answer,
    effect::{RequestEffect, RequestMachine, RequestReport},
    exchange::{Exchange, Exchanged},
    now::Now,
    request::{ObjectRequest, OnForbidden},
};

/// The newest state of one object, on its way from the API server.
#[derive(Debug)]
pub struct ObjectRead<'o> {
    uid: &'o str,
    exchange: Exchange,
}

/// The result of a read.
#[derive(Debug)]
pub enum ReadResult {
    /// The newest state.
    Object(Arc<Value>),
    /// The object does not exist any more.
    Gone,
    /// The lease ended first.
    LeaseEnded,
    /// The object cannot be read, for this reason.
    Unreadable(String),
}

// === impl ObjectRead ===

impl<'o> ObjectRead<'o> {
    /// Reads the object with this uid.
    #[must_use]
    pub fn new(uid: &'o str, now: &Now) -> Self {
        Self {
            uid,
            exchange: Exchange::begin(now),
        }
    }
}

impl RequestMachine for ObjectRead<'_> {
    type Outcome = ReadResult;

    fn step(&mut self, answer: Option<Answer>, now: &Now) -> RequestEffect<ReadResult> {
        let Some(answer) = answer else {
            return RequestEffect::Send;
        };
        let on_forbidden = OnForbidden::RetryForEver;
        let exchanged = self
            .exchange
            .read_answered(answer, self.uid, on_forbidden, now);
        RequestEffect::Done(match exchanged {
            Exchanged::Again(pause) => return RequestEffect::Wait(pause),
            Exchanged::ListInstead(reason) => {
                return RequestEffect::Report(RequestReport::ListedInstead(reason));
            }
            Exchanged::Object(object) => ReadResult::Object(object),
            Exchanged::Gone => ReadResult::Gone,
            Exchanged::LeaseEnded => ReadResult::LeaseEnded,
            Exchanged::Rejected(reason) => ReadResult::Unreadable(reason),
            Exchanged::Conflict
            | Exchanged::AsExpected(_)
            | Exchanged::Metadata(_)
            | Exchanged::Accepted => ReadResult::Unreadable("no answer to a read".to_owned()),
        })
    }

    fn request(&self) -> ObjectRequest<'_> {
        ObjectRequest::Read(self.exchange.read_verb())
    }
}
