//! Answers of the API server to requests for one object, and what they mean.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    machine::request::{AnswerNeed, ObjectRequest},
    object::{patch_response::version_if_expected, resource_version::ResourceVersion},
};

/// The words of etcd for an object above its limit of 1.5 MiB.
const TOO_LARGE_FOR_ETCD: &str = "etcdserver: request is too large";

/// The end of a request.
#[derive(Debug)]
pub enum Answer {
    /// The object after the request.
    Object(Arc<Value>),
    /// At this version, the object is the known state with the patch applied.
    AsExpected(ResourceVersion),
    /// A few fields of the object.
    Metadata(ReleasableMetadata),
    /// The patch was accepted.
    Accepted,
    /// The request failed.
    Failed(RequestFailure),
    /// The lease ended before there was an answer; the request may have been executed.
    LeaseEnded,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// The API server answered with a status that is no success.
    #[error("the server answered with status {code}: {message}")]
    Status {
        /// The HTTP status.
        code: u16,
        /// The message of the API server.
        message: String,
        /// The pause that the API server asks for.
        retry_after: Option<Duration>,
    },
    /// There was no answer in time; the request may have been executed.
    #[error("the server did not answer in time")]
    TimedOut,
    /// The connection failed; the request may have been executed.
    #[error("the request failed: {0}")]
    ConnectionLost(String),
    /// The answer is not the expected JSON; the request may have been executed.
    #[error("the response is not the expected JSON: {message}")]
    Unreadable {
        /// The error of the parser.
        message: String,
        /// Whether the answer ended too early; any other one stays as it is.
        cut: bool,
    },
}

/// The fields that the release of an object needs. All others are skipped, however deep they are
/// nested: the managed fields in the metadata are as deep as the object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleasableMetadata {
    /// The uid.
    pub uid: String,
    /// The resource version.
    pub resource_version: String,
    /// The time of the deletion request.
    pub deletion_timestamp: Option<String>,
    /// The finalizers.
    #[serde(default)]
    pub finalizers: Vec<String>,
}

#[derive(Deserialize)]
struct ReleasableObject {
    metadata: ReleasableMetadata,
}

/// The meaning of a failed request for what comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FailureMeaning {
    /// The object does not exist.
    Gone,
    /// Another client was faster.
    Conflict,
    /// The same request is never accepted.
    Rejected(String),
    /// A permission is missing, or a policy forbids the request; that may change.
    Forbidden(String),
    /// The same request may be accepted later.
    Transient {
        /// The pause that the API server asks for.
        at_least: Option<Duration>,
    },
}

// === impl Answer ===

impl Answer {
    /// Reads the text of a successful answer, as far as the request needs it.
    #[must_use]
    pub fn read(request: &ObjectRequest<'_>, text: &str) -> Self {
        let answer = match request {
            ObjectRequest::Read(_) | ObjectRequest::NextState { .. } => object(text),
            ObjectRequest::ReadMetadata(_) => metadata(text),
            ObjectRequest::Patch { need, .. } => match need {
                AnswerNeed::Nothing => Ok(Self::Accepted),
                AnswerNeed::Object => object(text),
                AnswerNeed::ObjectIfUnexpected(expected) => {
                    match version_if_expected(text, expected.known, expected.patch) {
                        Some(version) => Ok(Self::AsExpected(ResourceVersion::new(version))),
                        None => object(text),
                    }
                }
            },
        };
        answer.unwrap_or_else(|error| {
            Self::Failed(RequestFailure::Unreadable {
                message: error.to_string(),
                cut: error.is_eof(),
            })
        })
    }
}

fn object(text: &str) -> Result<Answer, serde_json::Error> {
    let body: Value = serde_json::from_str(text)?;
    Ok(Answer::Object(Arc::new(body)))
}

fn metadata(text: &str) -> Result<Answer, serde_json::Error> {
    let object: ReleasableObject = serde_json::from_str(text)?;
    Ok(Answer::Metadata(object.metadata))
}

// === impl RequestFailure ===

impl RequestFailure {
    /// Whether the API server may have executed the request in spite of the failure.
    #[must_use]
    pub fn may_be_executed(&self) -> bool {
        match self {
            Self::TimedOut | Self::ConnectionLost(_) | Self::Unreadable { .. } => true,
            Self::Status { code, .. } => *code >= 500 && !self.is_too_large(),
        }
    }

    pub(super) fn meaning(&self) -> FailureMeaning {
        match self {
            Self::TimedOut | Self::ConnectionLost(_) | Self::Unreadable { cut: true, .. } => {
                FailureMeaning::Transient { at_least: None }
            }
            Self::Unreadable { cut: false, .. } => FailureMeaning::Rejected(self.to_string()),
            Self::Status {
                code,
                message,
                retry_after,
            } => match code {
                404 => FailureMeaning::Gone,
                409 => FailureMeaning::Conflict,
                403 => FailureMeaning::Forbidden(message.clone()),
                400 | 413 | 422 => FailureMeaning::Rejected(message.clone()),
                // The API server has no code of its own for that.
                500 if self.is_too_large() => FailureMeaning::Rejected(message.clone()),
                // Other credentials, or another moment, may make a difference.
                401 | 408 | 429 => FailureMeaning::Transient {
                    at_least: *retry_after,
                },
                400..500 => FailureMeaning::Rejected(format!("status {code}: {message}")),
                _ => FailureMeaning::Transient {
                    at_least: *retry_after,
                },
            },
        }
    }

    /// Whether the object is larger than etcd accepts.
    fn is_too_large(&self) -> bool {
        matches!(self, Self::Status { code: 500, message, .. } if message.contains(TOO_LARGE_FOR_ETCD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::request::ReadVerb;

    fn status(code: u16) -> RequestFailure {
        RequestFailure::Status {
            code,
            message: "no".to_owned(),
            retry_after: None,
        }
    }

    #[test]
    fn client_errors_that_no_repetition_mends_are_rejections() {
        for code in [400, 405, 406, 410, 413, 415, 418, 422] {
            let meaning = status(code).meaning();
            assert!(matches!(meaning, FailureMeaning::Rejected(_)), "{code}");
            assert!(!status(code).may_be_executed(), "{code}");
        }
        for code in [401, 408, 429] {
            let meaning = status(code).meaning();
            assert_eq!(meaning, FailureMeaning::Transient { at_least: None });
            assert!(!status(code).may_be_executed(), "{code}");
        }
        for code in [500, 502, 503, 504] {
            let meaning = status(code).meaning();
            assert_eq!(meaning, FailureMeaning::Transient { at_least: None });
            assert!(status(code).may_be_executed(), "{code}");
        }
        assert_eq!(status(404).meaning(), FailureMeaning::Gone);
        assert_eq!(status(409).meaning(), FailureMeaning::Conflict);
        let too_large = RequestFailure::Status {
            code: 500,
            message: TOO_LARGE_FOR_ETCD.to_owned(),
            retry_after: None,
        };
        assert!(matches!(too_large.meaning(), FailureMeaning::Rejected(_)));
    }

    #[test]
    fn an_answer_that_ends_too_early_is_asked_for_again() {
        let read = |text: &str| match Answer::read(&ObjectRequest::Read(ReadVerb::Get), text) {
            Answer::Failed(failure) => failure.meaning(),
            answer => panic!("no JSON, but {answer:?}"),
        };
        assert!(matches!(read(&"[".repeat(200)),
            FailureMeaning::Rejected(reason) if reason.contains("recursion limit")));
        let cut = read("{\"cut\": ");
        assert_eq!(cut, FailureMeaning::Transient { at_least: None });
    }

    #[test]
    fn the_metadata_of_objects_of_any_depth_is_read() {
        let (open, close) = ("[".repeat(9_000), "]".repeat(9_000));
        let text = format!(
            r#"{{"metadata": {{"uid": "u", "resourceVersion": "5", "finalizers": ["ours"],
                "managedFields": {open}{close}}}, "spec": {open}{close}}}"#
        );
        match Answer::read(&ObjectRequest::ReadMetadata(ReadVerb::Get), &text) {
            Answer::Metadata(object) => assert_eq!(object.finalizers, ["ours"]),
            answer => panic!("not read: {answer:?}"),
        }
    }
}
