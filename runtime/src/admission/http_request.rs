//! Handles one HTTP request: its path, method and size, and the response if it is no review.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use kopf_core::admission::certificate::Certificate;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use tracing::{debug, error};

use super::limits::WebhookLimits;
use super::open_connections::OpenConnection;
use super::reviewer::{ReviewError, Reviewer};
use crate::context::validation::Caller;
use crate::task::panic_message;

/// Answers the requests of all connections.
pub(super) struct ReviewService {
    reviewer: Reviewer,
    /// The part of the path before the paths of the webhooks.
    prefix: String,
    /// The bytes that further reviews may use.
    bytes: Semaphore,
    limits: WebhookLimits,
}

/// Answers the requests of one connection.
#[derive(Clone)]
pub(super) struct RequestAnswerer {
    pub(super) service: Arc<ReviewService>,
    pub(super) connection: Arc<OpenConnection>,
    /// The certificate of the client.
    pub(super) certificate: Option<Arc<Certificate>>,
}

/// The text of a review, and the bytes that it takes from all of them.
struct ReceivedReview<'a> {
    text: Vec<u8>,
    reserved_bytes: Option<SemaphorePermit<'a>>,
}

/// A request that is not answered with an admission review.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("reviews are sent with POST")]
    Method,
    #[error("a review has {0} bytes at most")]
    TooLarge(usize),
    #[error("the review did not arrive within {0:?}")]
    TooSlow(Duration),
    #[error("the connection closed before the review was complete")]
    Incomplete,
    #[error("too many reviews at once")]
    Busy,
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error("the review failed: {0}")]
    Panicked(String),
}

// === impl ReviewService ===

impl ReviewService {
    pub(super) fn new(reviewer: Reviewer, prefix: &str, limits: WebhookLimits) -> Self {
        Self {
            reviewer,
            prefix: prefix.trim_end_matches('/').to_owned(),
            bytes: Semaphore::new(limits.total_bytes.min(Semaphore::MAX_PERMITS)),
            limits,
        }
    }

    async fn review(
        &self,
        request: Request<Incoming>,
        connection: &OpenConnection,
        certificate: Option<Arc<Certificate>>,
    ) -> Result<Vec<u8>, RequestError> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let Some(path) = path.strip_prefix(self.prefix.as_str()) else {
            return Err(ReviewError::UnknownWebhook(shortened(path)).into());
        };
        if head.method != Method::POST {
            return Err(RequestError::Method);
        }
        let received = self.receive(body).await?;
        let _running = connection.begin_review();
        let timeout = head.uri.query().and_then(timeout);
        let caller = Caller {
            headers: head.headers,
            certificate,
        };
        let review = self.reviewer.review(path, &received.text, caller, timeout);
        match AssertUnwindSafe(review).catch_unwind().await {
            Ok(answer) => Ok(answer?),
            Err(payload) => {
                let message = panic_message(&*payload);
                error!("a review panicked outside of the webhook function: {message}");
                Err(RequestError::Panicked(message))
            }
        }
    }

    /// Reads a review. Bytes are reserved as they arrive: a client that announces many, and sends
    /// few, takes none from others.
    async fn receive(&self, mut body: Incoming) -> Result<ReceivedReview<'_>, RequestError> {
        let limits = &self.limits;
        if body.size_hint().lower() > limits.body_bytes as u64 {
            return Err(RequestError::TooLarge(limits.body_bytes));
        }
        let mut received = ReceivedReview {
            text: Vec::new(),
            reserved_bytes: None,
        };
        let deadline = Instant::now() + limits.body;
        loop {
            let frame = match timeout_at(deadline, body.frame()).await {
                Ok(None) => return Ok(received),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) => return Err(RequestError::Incomplete),
                Err(_) => return Err(RequestError::TooSlow(limits.body)),
            };
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            if received.text.len() + bytes.len() > limits.body_bytes {
                return Err(RequestError::TooLarge(limits.body_bytes));
            }
            let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let reserved = timeout_at(deadline, self.bytes.acquire_many(count)).await;
            let Ok(Ok(reserved)) = reserved else {
                return Err(RequestError::Busy);
            };
            match &mut received.reserved_bytes {
                Some(all) => all.merge(reserved),
                none => *none = Some(reserved),
            }
            received.text.extend_from_slice(&bytes);
        }
    }
}

// === impl RequestAnswerer ===

impl RequestAnswerer {
    /// Answers one request.
    pub(super) async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let certificate = self.certificate.clone();
        let answer = self.service.review(request, &self.connection, certificate);
        Ok(response(answer.await))
    }
}

fn response(answer: Result<Vec<u8>, RequestError>) -> Response<Full<Bytes>> {
    let (status, content_type, text) = match answer {
        Ok(answer) => (StatusCode::OK, "application/json", answer),
        Err(error) => {
            debug!("a request is not answered with a review: {error}");
            let text = format!("{error}\n").into_bytes();
            (error.status(), "text/plain; charset=utf-8", text)
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

impl RequestError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Incomplete => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Review(error) => {
                StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST)
            }
            Self::Panicked(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// How long the API server waits for the answer: `?timeout=10s`.
fn timeout(query: &str) -> Option<Duration> {
    let timeout = query
        .split('&')
        .find_map(|part| part.strip_prefix("timeout="))?;
    let seconds: u64 = timeout.strip_suffix('s')?.parse().ok()?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// A path for messages and logs; any client may send a long one.
fn shortened(path: &str) -> String {
    path.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_of_the_api_server_is_read_from_the_query() {
        assert_eq!(timeout("timeout=10s"), Some(Duration::from_secs(10)));
        assert_eq!(timeout("a=b&timeout=3s"), Some(Duration::from_secs(3)));
        for other in [
            "",
            "timeout=",
            "timeout=s",
            "timeout=-1s",
            "timeout=0s",
            "timeout=1h",
        ] {
            assert_eq!(timeout(other), None, "{other}");
        }
    }
}
