//! The spans in which handlers run, so that each log line tells its object and its handler.
//!
//! They are of the highest level: whatever is logged at all has its object.

use tracing::{Span, error_span};

/// The target of all spans made here.
pub(crate) const TARGET: &str = "kopf_runtime::span";

/// The name of the span of an object.
pub(crate) const OBJECT: &str = "object";

/// The name of the span of a handler.
pub(crate) const HANDLER: &str = "handler";

/// The span of everything that is done about an object.
pub(crate) fn object(
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    uid: &str,
) -> Span {
    error_span!(target: TARGET, OBJECT, api_version, kind, namespace, name, uid)
}

/// The span of one call of a handler, after so many that failed.
pub(crate) fn handler(id: &str, retry: u32) -> Span {
    error_span!(target: TARGET, HANDLER, id, retry)
}

/// Both in one, for calls that are many and short.
pub(crate) fn handler_of(
    subject: [&str; 4],
    namespace: Option<&str>,
    id: &str,
    retry: u32,
) -> Span {
    let [api_version, kind, name, uid] = subject;
    error_span!(target: TARGET, HANDLER, id, retry, api_version, kind, namespace, name, uid)
}
