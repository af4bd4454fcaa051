//! The tracing spans of objects and handlers, which give log lines their object and handler.
//!
//! They have the level `ERROR`, so that they exist at every log level.

use tracing::{Span, error_span};

/// The target of all spans made here.
pub(crate) const TARGET: &str = "kopf_runtime::span";

/// The name of the span of an object.
pub(crate) const OBJECT: &str = "object";

/// The name of the span of a handler.
pub(crate) const HANDLER: &str = "handler";

/// The span of the whole processing of an object.
pub(crate) fn object(
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    uid: &str,
) -> Span {
    error_span!(target: TARGET, OBJECT, api_version, kind, namespace, name, uid)
}

/// The span of one call of a handler, after so many other attempts.
pub(crate) fn handler(id: &str, retry: u32) -> Span {
    error_span!(target: TARGET, HANDLER, id, retry)
}

/// The span of an object and a handler in one, for calls that are many and short.
pub(crate) fn handler_of(
    subject: [&str; 4],
    namespace: Option<&str>,
    id: &str,
    retry: u32,
) -> Span {
    let [api_version, kind, name, uid] = subject;
    error_span!(target: TARGET, HANDLER, id, retry, api_version, kind, namespace, name, uid)
}
