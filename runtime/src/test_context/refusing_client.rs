//! A client that sends nothing.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower_service::Service;

/// A client whose requests all fail with the same answer.
pub(super) fn refusing_client() -> Client {
    Client::new(RefusedRequests, "default")
}

#[derive(Clone)]
struct RefusedRequests;

impl Service<Request<Body>> for RefusedRequests {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // No request is repeated after this code.
        let code = StatusCode::METHOD_NOT_ALLOWED;
        let message = format!(
            "a unit test without a client sends no requests: {} {}",
            request.method(),
            request.uri().path()
        );
        let status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "message": message,
            "reason": "MethodNotAllowed",
            "code": code.as_u16(),
        });
        let mut response = Response::new(Body::from(status.to_string().into_bytes()));
        *response.status_mut() = code;
        ready(Ok(response))
    }
}
