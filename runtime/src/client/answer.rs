//! The answer to a request as text, or why there is none, and after what pause to ask again.

use std::io;

use futures::{AsyncBufRead, TryStreamExt as _};
use http::header::{HeaderMap, RETRY_AFTER};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;

/// Sends a request, and reads its whole answer.
pub(crate) async fn answer_text(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<String, kube::Error> {
    let body = answer(client, request).await?;
    text(body).await
}

/// Sends a request whose answer goes on for a long time.
pub(super) async fn answer_stream(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<impl AsyncBufRead + use<>, kube::Error> {
    let body = answer(client, request).await?;
    let stream = body.into_data_stream().map_err(io::Error::other);
    Ok(stream.into_async_read())
}

/// Sends a request, and reads the whole answer if that is a failure.
async fn answer(client: &Client, request: Request<Vec<u8>>) -> Result<Body, kube::Error> {
    let answer = client.send(request.map(Body::from)).await?;
    let (head, body) = answer.into_parts();
    if head.status.is_client_error() || head.status.is_server_error() {
        let failure = failure(head.status, &head.headers, &text(body).await?);
        return Err(kube::Error::Api(failure.boxed()));
    }
    Ok(body)
}

async fn text(body: Body) -> Result<String, kube::Error> {
    let bytes = body.collect_bytes().await?;
    String::from_utf8(bytes.into()).map_err(kube::Error::FromUtf8)
}

/// A failure as the API server describes it, or a proxy before it.
///
/// An overloaded API server refuses requests before it looks at them: with plain text, and with the
/// pause in a header.
fn failure(code: StatusCode, headers: &HeaderMap, text: &str) -> Status {
    let mut status = serde_json::from_str(text)
        .unwrap_or_else(|_| Status::failure(text.trim(), "Failed to parse error data"));
    if status.code == 0 {
        status.code = code.as_u16();
    }
    let seconds = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok());
    if let Some(seconds) = seconds.and_then(|it| it.parse::<u32>().ok()) {
        let details = status.details.get_or_insert_with(no_details);
        details.retry_after_seconds = details.retry_after_seconds.max(seconds);
    }
    status
}

fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn failed(code: StatusCode, retry_after: Option<&'static str>, text: &str) -> (u16, u32) {
        let value = retry_after.map(HeaderValue::from_static);
        let headers = value
            .map(|value| (RETRY_AFTER, value))
            .into_iter()
            .collect();
        let status = failure(code, &headers, text);
        let seconds = status.details.map_or(0, |it| it.retry_after_seconds);
        (status.code, seconds)
    }

    #[test]
    fn the_pause_of_an_overloaded_api_server_is_in_a_header() {
        let busy = StatusCode::TOO_MANY_REQUESTS;
        let text = "Too many requests, please try again later.\n";
        assert_eq!(failed(busy, Some("7"), text), (429, 7));
        assert_eq!(failed(busy, None, text), (429, 0));
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        assert_eq!(failed(busy, Some(date), text), (429, 0));
    }

    #[test]
    fn the_pause_of_a_status_counts_with_the_header() {
        let status = r#"{"kind":"Status","code":503,"details":{"retryAfterSeconds":5}}"#;
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        assert_eq!(failed(unavailable, None, status), (503, 5));
        assert_eq!(failed(unavailable, Some("9"), status), (503, 9));
    }

    #[test]
    fn an_answer_that_is_no_status_has_the_code_of_the_answer() {
        for text in ["<html></html>", "", r#"{"error": "no upstream"}"#] {
            assert_eq!(failed(StatusCode::BAD_GATEWAY, None, text), (502, 0));
        }
    }
}
