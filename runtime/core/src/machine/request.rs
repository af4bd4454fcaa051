//! The requests for one object that machines ask for.

use serde_json::Value;

/// A request for one object; the object is named by the caller.
#[derive(Clone, Copy, Debug)]
pub enum ObjectRequest<'a> {
    /// Read the newest state.
    Read(ReadVerb),
    /// Read a few fields of the newest state, however deep the others are nested.
    ReadMetadata(ReadVerb),
    /// Read the first state after this version.
    NextState {
        /// The resource version.
        after: &'a str,
    },
    /// Change the object.
    Patch {
        /// The endpoint.
        endpoint: PatchEndpoint,
        /// The patch with its precondition.
        content: PatchContent<'a>,
        /// The part of the answer that is needed.
        need: AnswerNeed<'a>,
    },
}

/// The permission that a read of one object needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadVerb {
    /// `get`: the object itself.
    Get,
    /// `list`: the objects of its name. An operator that watches objects may list them, even if it
    /// may not get them.
    List,
}

/// The endpoint of an object that a patch is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchEndpoint {
    /// The object itself.
    Object,
    /// Its status.
    Status,
}

/// The content of a patch.
#[derive(Clone, Copy, Debug)]
pub enum PatchContent<'a> {
    /// A merge patch; the API server compares its uid and its version with the object first.
    Merge(&'a Value),
    /// A JSON patch, with tests.
    Json(&'a Value),
}

/// The part of an answer to a patch that a machine needs.
#[derive(Clone, Copy, Debug)]
pub enum AnswerNeed<'a> {
    /// The object.
    Object,
    /// Only the version, if the object is as expected; otherwise the object.
    ObjectIfUnexpected(ExpectedState<'a>),
    /// Only that it was accepted.
    Nothing,
}

/// The expected state of an object after a merge patch.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedState<'a> {
    /// The state before.
    pub known: &'a Value,
    /// The merge patch.
    pub patch: &'a Value,
}

/// The reaction to a request that the API server forbids, for want of a permission or by a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnForbidden {
    /// It is rejected at once: the caller tries it again later.
    Reject,
    /// It is sent again for about a minute, as by Kopf: permissions take time to arrive.
    RetryForMinute {
        /// Whether a stop of the operator ends that.
        ends_at_stop: bool,
    },
    /// It is sent again without end.
    RetryForEver,
}
