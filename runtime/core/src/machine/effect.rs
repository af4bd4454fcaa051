//! The effects of machines that make requests for one object.

use std::time::Duration;

use crate::machine::{
    answer::{Answer, RequestFailure},
    now::Now,
    request::ObjectRequest,
};

/// A machine that makes requests for one object until it has a result.
pub trait RequestMachine {
    /// The result.
    type Outcome;

    /// Goes on from the former effect: the answer to a request, none at the beginning, after a
    /// pause and after a report.
    fn step(&mut self, answer: Option<Answer>, now: &Now) -> RequestEffect<Self::Outcome>;

    /// The request to send.
    fn request(&self) -> ObjectRequest<'_>;
}

/// The next effect of a machine that makes requests.
#[derive(Debug)]
pub enum RequestEffect<R> {
    /// Send the [request](RequestMachine::request).
    Send,
    /// Wait.
    Wait(RequestPause),
    /// Report this.
    Report(RequestReport),
    /// The machine has ended.
    Done(R),
}

/// A pause before the next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPause {
    /// Its length.
    pub pause: Duration,
    /// Whether a stop of the operator ends it.
    pub ends_at_stop: bool,
    /// The failure of the former request, to be reported; none after a conflict.
    pub failure: Option<RequestFailure>,
}

/// A fact about requests for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestReport {
    /// The kind has no endpoint for the status, unlike the generated code: the status is written
    /// with the rest.
    NoStatusEndpoint,
    /// The API server accepted these fields, and did not keep them.
    NotKept(Vec<String>),
    /// The object may not be got, for this reason, and is listed instead.
    ListedInstead(String),
    /// Others change the object all the time: so many writes in a row were too late.
    Contended(u32),
    /// An edit is made again: whether it was written is unknown, for this reason.
    EditUnconfirmed(String),
}
