//! Responses of the page, with the headers that protect it.

use std::convert::Infallible;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use serde::Serialize;

/// The body of a response.
pub(super) type PageBody = UnsyncBoxBody<Bytes, Infallible>;

/// Only what the operator itself serves is run, shown and requested; no other page can embed it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'";

/// The headers of all responses.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

pub(super) fn text(status: StatusCode, message: &str) -> Response<PageBody> {
    file(status, "text/plain; charset=utf-8", format!("{message}\n"))
}

pub(super) fn file(
    status: StatusCode,
    content_type: &'static str,
    content: impl Into<Bytes>,
) -> Response<PageBody> {
    let body = Full::new(content.into()).boxed_unsync();
    with_headers(status, content_type, body)
}

pub(super) fn json(value: &impl Serialize) -> Response<PageBody> {
    match serde_json::to_vec(value) {
        Ok(body) => file(StatusCode::OK, "application/json", body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

pub(super) fn with_headers(
    status: StatusCode,
    content_type: &'static str,
    body: PageBody,
) -> Response<PageBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
