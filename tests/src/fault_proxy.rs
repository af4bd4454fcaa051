//! A proxy between a client and an API server that injects faults: responses, delays, cut connections.
//!
//! It serves plain HTTP on loopback, and sends requests to the API server as one user.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::control_plane::{self, ControlPlane};
use crate::user::{self, User};

mod truncate;

/// A running proxy, which ends with this value.
#[derive(Debug)]
pub struct FaultProxy {
    state: Arc<ProxyState>,
    address: SocketAddr,
    kubeconfig: PathBuf,
    serving: tokio::task::JoinHandle<()>,
}

/// A fault that the proxy injects into a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The proxy answers with this status and does not forward the request.
    Answer(StatusCode),
    /// The same with a `Retry-After` header.
    AnswerRetryAfter(StatusCode, Duration),
    /// The proxy forwards the request after this time.
    Delay(Duration),
    /// The proxy closes the connection before it forwards the request.
    CutBefore,
    /// The proxy forwards the request, and closes the connection instead of answering.
    CutAfter,
    /// The proxy closes the connection in the middle of the watch event after this many.
    TruncateAfter(usize),
}

/// A filter for requests: matches all until narrowed.
#[derive(Clone, Debug, Default)]
pub struct RequestMatch {
    method: Option<Method>,
    path: Option<String>,
    parameter: Option<String>,
    watch: Option<bool>,
}

/// One request through the proxy, and its response; no status if the proxy cut the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub uri: String,
    /// The status that the client got.
    pub status: Option<StatusCode>,
    /// The time of the request.
    pub arrived: Instant,
    /// The time of the response, after the API server has executed the request.
    pub answered: Instant,
}

/// The reasons why a proxy did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no client for the user.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    /// The client's kubeconfig could not be written.
    #[error(transparent)]
    User(#[from] user::Error),
    /// There is no free port on loopback.
    #[error("listen on loopback")]
    Listen(#[from] io::Error),
}

#[derive(Debug)]
struct FaultRule {
    matches: RequestMatch,
    fault: Fault,
    /// The number of further requests that get the fault.
    remaining: usize,
}

struct ProxyState {
    upstream: Client,
    // Many connections lock both, each for the length of a lookup.
    rules: Mutex<Vec<FaultRule>>,
    requests: Mutex<Vec<ProxiedRequest>>,
    /// The header that authorizes requests; none if all are.
    token: Mutex<Option<String>>,
    /// Counts calls of [`FaultProxy::cut_all`]; a connection ends when it changes.
    cuts: watch::Sender<u64>,
}

type ProxyBody = UnsyncBoxBody<Bytes, BodyError>;
type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Ends the connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("the fault proxy cuts this connection")]
struct ConnectionCut;

// === impl FaultProxy ===

impl FaultProxy {
    /// Starts a proxy that acts as `user` towards the control plane.
    pub async fn start(plane: &ControlPlane, user: &User) -> Result<Self, Error> {
        let upstream = plane.client(user).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let kubeconfig = user.unauthenticated(address, &plane.scratch())?;
        let state = Arc::new(ProxyState {
            upstream,
            rules: Mutex::default(),
            requests: Mutex::default(),
            token: Mutex::default(),
            cuts: watch::Sender::new(0),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Ok(Self {
            state,
            address,
            kubeconfig,
            serving,
        })
    }

    /// A client that connects to this proxy.
    pub async fn client(&self) -> Result<Client, Error> {
        Ok(user::client_from(&self.kubeconfig).await?)
    }

    /// A kubeconfig with which a child process connects to this proxy.
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// The address on which the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Injects the fault into the next matching request.
    pub fn once(&self, matches: RequestMatch, fault: Fault) {
        self.times(1, matches, fault);
    }

    /// Injects the fault into the next `count` matching requests. The oldest matching rule wins.
    pub fn times(&self, count: usize, matches: RequestMatch, fault: Fault) {
        lock(&self.state.rules).push(FaultRule {
            matches,
            fault,
            remaining: count,
        });
    }

    /// Injects the fault into every matching request until [`FaultProxy::clear_faults`].
    pub fn always(&self, matches: RequestMatch, fault: Fault) {
        self.times(usize::MAX, matches, fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        lock(&self.state.rules).clear();
    }

    /// From now on, requests without this bearer token are answered with 401.
    pub fn require_token(&self, token: &str) {
        *lock(&self.state.token) = Some(format!("Bearer {token}"));
    }

    /// Closes every open connection, watches included; clients may reconnect.
    pub fn cut_all(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Every request so far, in the order of the responses.
    pub fn requests(&self) -> Vec<ProxiedRequest> {
        lock(&self.state.requests).clone()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    continue;
                };
                let (state, mut cuts) = (Arc::clone(&state), state.cuts.subscribe());
                connections.spawn(async move {
                    let answer = service_fn(|request| state.answer(request));
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer);
                    tokio::select! {
                        // An error here is an injected fault.
                        _ = connection => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

// === impl ProxyState ===

impl ProxyState {
    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, ConnectionCut> {
        let (method, uri) = (request.method().clone(), request.uri().to_string());
        let arrived = Instant::now();
        let outcome = self.inject_or_forward(request).await;
        let status = outcome.as_ref().ok().map(Response::status);
        lock(&self.requests).push(ProxiedRequest {
            method,
            uri,
            status,
            arrived,
            answered: Instant::now(),
        });
        outcome
    }

    async fn inject_or_forward(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, ConnectionCut> {
        if !self.is_authorized(&request) {
            return Ok(error_response(StatusCode::UNAUTHORIZED, None));
        }
        match self.take_fault(&request) {
            None => self.forward(request).await,
            Some(Fault::Answer(status)) => Ok(error_response(status, None)),
            Some(Fault::AnswerRetryAfter(status, after)) => Ok(error_response(status, Some(after))),
            Some(Fault::Delay(time)) => {
                tokio::time::sleep(time).await;
                self.forward(request).await
            }
            Some(Fault::CutBefore) => Err(ConnectionCut),
            Some(Fault::CutAfter) => {
                let response = self.forward(request).await?;
                // The API server has executed the request once its response is complete.
                let _ = response.into_body().collect().await;
                Err(ConnectionCut)
            }
            Some(Fault::TruncateAfter(events)) => {
                let response = self.forward(request).await?;
                Ok(response.map(|body| truncate::after_lines(body, events)))
            }
        }
    }

    fn is_authorized(&self, request: &Request<Incoming>) -> bool {
        let sent = request.headers().get(http::header::AUTHORIZATION);
        let sent = sent.and_then(|header| header.to_str().ok());
        lock(&self.token)
            .as_deref()
            .is_none_or(|token| sent == Some(token))
    }

    fn take_fault(&self, request: &Request<Incoming>) -> Option<Fault> {
        let mut rules = lock(&self.rules);
        let position = rules
            .iter()
            .position(|rule| rule.matches.accepts(request))?;
        let rule = &mut rules[position];
        rule.remaining -= 1;
        let fault = rule.fault.clone();
        if rule.remaining == 0 {
            rules.remove(position);
        }
        Some(fault)
    }

    async fn forward(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, ConnectionCut> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| ConnectionCut)?.to_bytes();
        // These belong to the connection from the client, not to the request.
        parts.headers.remove(http::header::AUTHORIZATION);
        parts.headers.remove(http::header::HOST);
        parts.headers.remove(http::header::CONNECTION);
        let request = Request::from_parts(parts, kube::client::Body::from(body));
        // Without an API server, the proxy closes the client's connection.
        let response = self
            .upstream
            .send(request)
            .await
            .map_err(|_| ConnectionCut)?;
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(http::header::CONNECTION);
        parts.headers.remove(http::header::TRANSFER_ENCODING);
        let body = body
            .map_err(|error| Box::new(error) as BodyError)
            .boxed_unsync();
        Ok(Response::from_parts(parts, body))
    }
}

impl fmt::Debug for ProxyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyState")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// An error response in the API server's format.
fn error_response(status: StatusCode, after: Option<Duration>) -> Response<ProxyBody> {
    let reason = match status {
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::GONE => "Expired",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "Unknown",
    };
    let text = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected by the fault proxy", "reason": reason, "code": status.as_u16(),
    });
    let body = Full::new(Bytes::from(text.to_string()));
    let body = body.map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    if let Some(after) = after {
        headers.insert(
            http::header::RETRY_AFTER,
            http::HeaderValue::from(after.as_secs()),
        );
    }
    response
}

// === impl RequestMatch ===

impl RequestMatch {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only requests with this method.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Only requests whose path contains this text.
    #[must_use]
    pub fn path(mut self, part: impl Into<String>) -> Self {
        self.path = Some(part.into());
        self
    }

    /// Only requests with this parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>) -> Self {
        self.parameter = Some(name.into());
        self
    }

    /// Only watches.
    #[must_use]
    pub fn watches(mut self) -> Self {
        self.watch = Some(true);
        self
    }

    /// No watches.
    #[must_use]
    pub fn not_watches(mut self) -> Self {
        self.watch = Some(false);
        self
    }

    fn accepts<B>(&self, request: &Request<B>) -> bool {
        let uri = request.uri();
        let is_watch = uri.query().is_some_and(|query| {
            query
                .split('&')
                .any(|it| it == "watch=true" || it == "watch=1")
        });
        self.method
            .as_ref()
            .is_none_or(|method| method == request.method())
            && self
                .path
                .as_ref()
                .is_none_or(|part| uri.path().contains(part.as_str()))
            && self.parameter.as_ref().is_none_or(|name| {
                let mut parameters = uri.query().unwrap_or_default().split('&');
                parameters.any(|it| it.split('=').next() == Some(name))
            })
            && self.watch.is_none_or(|watch| watch == is_watch)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_requires_method_path_and_watch() {
        let matches = RequestMatch::any()
            .method(Method::GET)
            .path("/widgets")
            .watches();
        let accepts = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(());
            matches.accepts(&request.expect("well formed"))
        };

        assert!(accepts(
            Method::GET,
            "/apis/g/v1/widgets?limit=1&watch=true"
        ));
        assert!(!accepts(Method::GET, "/apis/g/v1/widgets?limit=1"));
        assert!(!accepts(Method::GET, "/apis/g/v1/gadgets?watch=true"));
        assert!(!accepts(Method::POST, "/apis/g/v1/widgets?watch=true"));
    }
}
