//! A proxy between a client and an API server that answers, delays and cuts on request.
//!
//! It speaks plain HTTP on loopback to its clients, and acts towards the API server as the identity
//! it was started for.

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
use crate::identity::{self, Identity};

mod truncate;

/// A running proxy, which ends with this value.
#[derive(Debug)]
pub struct FaultProxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    kubeconfig: PathBuf,
    serving: tokio::task::JoinHandle<()>,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answered with this status and never forwarded.
    Answer(StatusCode),
    /// The same, and the client is told when to come back.
    AnswerRetryAfter(StatusCode, Duration),
    /// Forwarded after this time.
    Delay(Duration),
    /// The connection is cut before the request is forwarded.
    CutBefore,
    /// The request is carried out, and the connection is cut instead of answering.
    CutAfter,
    /// The answer, usually a watch, is cut in the middle of the event after this many.
    TruncateAfter(usize),
}

/// Which requests a fault is for: all, until narrowed.
#[derive(Clone, Debug, Default)]
pub struct RequestMatch {
    method: Option<Method>,
    path: Option<String>,
    parameter: Option<String>,
    watch: Option<bool>,
}

/// One request that came through, and how it was answered; no status if the connection was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub uri: String,
    /// The status that the client saw.
    pub status: Option<StatusCode>,
    /// When it came.
    pub arrived: Instant,
    /// When it was answered, which is after it had its effect.
    pub answered: Instant,
}

/// Why there is no proxy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The identity has no client.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    /// The client's kubeconfig could not be written.
    #[error(transparent)]
    Identity(#[from] identity::Error),
    /// No port on loopback.
    #[error("listen on loopback")]
    Listen(#[from] io::Error),
}

#[derive(Debug)]
struct Rule {
    matches: RequestMatch,
    fault: Fault,
    /// How many more requests it is for.
    remaining: usize,
}

struct Shared {
    upstream: Client,
    // Both are touched for the length of a lookup, by many connections.
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<ProxiedRequest>>,
    /// Counts the cuts of everything; a connection ends when it changes.
    cuts: watch::Sender<u64>,
}

type Body = UnsyncBoxBody<Bytes, BoxError>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the fault proxy cuts this connection")]
struct Cut;

// === impl FaultProxy ===

impl FaultProxy {
    /// Starts a proxy whose clients are `identity` to the control plane.
    pub async fn start(plane: &ControlPlane, identity: &Identity) -> Result<Self, Error> {
        let upstream = plane.client(identity).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let kubeconfig = identity.unauthenticated(address, &plane.scratch())?;
        let shared = Arc::new(Shared {
            upstream,
            rules: Mutex::default(),
            seen: Mutex::default(),
            cuts: watch::Sender::new(0),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            address,
            kubeconfig,
            serving,
        })
    }

    /// A client that talks through this proxy.
    pub async fn client(&self) -> Result<Client, Error> {
        Ok(identity::client_from(&self.kubeconfig).await?)
    }

    /// A kubeconfig for a child process that is to talk through this proxy.
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does this to the next matching request.
    pub fn once(&self, matches: RequestMatch, fault: Fault) {
        self.times(1, matches, fault);
    }

    /// Does this to the next `count` matching requests. Of several rules, the oldest is used up
    /// first.
    pub fn times(&self, count: usize, matches: RequestMatch, fault: Fault) {
        lock(&self.shared.rules).push(Rule {
            matches,
            fault,
            remaining: count,
        });
    }

    /// Does this to every matching request until [`FaultProxy::heal`].
    pub fn always(&self, matches: RequestMatch, fault: Fault) {
        self.times(usize::MAX, matches, fault);
    }

    /// Forgets all faults.
    pub fn heal(&self) {
        lock(&self.shared.rules).clear();
    }

    /// Cuts every open connection, watches included; new ones are welcome.
    pub fn cut_all(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Every request that came so far, in the order of their answers.
    pub fn requests(&self) -> Vec<ProxiedRequest> {
        lock(&self.shared.seen).clone()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    continue;
                };
                let (shared, mut cuts) = (Arc::clone(&shared), shared.cuts.subscribe());
                connections.spawn(async move {
                    let answer = service_fn(|request| shared.answer(request));
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer);
                    tokio::select! {
                        // Cutting connections is what this server is for.
                        _ = connection => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

// === impl Shared ===

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
        let (method, uri) = (request.method().clone(), request.uri().to_string());
        let arrived = Instant::now();
        let outcome = self.decide_and_forward(request).await;
        let status = outcome.as_ref().ok().map(Response::status);
        lock(&self.seen).push(ProxiedRequest {
            method,
            uri,
            status,
            arrived,
            answered: Instant::now(),
        });
        outcome
    }

    async fn decide_and_forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
        match self.take_fault(&request) {
            None => self.forward(request).await,
            Some(Fault::Answer(status)) => Ok(refusal(status, None)),
            Some(Fault::AnswerRetryAfter(status, after)) => Ok(refusal(status, Some(after))),
            Some(Fault::Delay(time)) => {
                tokio::time::sleep(time).await;
                self.forward(request).await
            }
            Some(Fault::CutBefore) => Err(Cut),
            Some(Fault::CutAfter) => {
                let response = self.forward(request).await?;
                // The request has had its effect once its answer is complete.
                let _ = response.into_body().collect().await;
                Err(Cut)
            }
            Some(Fault::TruncateAfter(events)) => {
                let response = self.forward(request).await?;
                Ok(response.map(|body| truncate::after_lines(body, events)))
            }
        }
    }

    fn take_fault(&self, request: &Request<Incoming>) -> Option<Fault> {
        let mut rules = lock(&self.rules);
        let position = rules.iter().position(|rule| rule.matches.admits(request))?;
        let rule = &mut rules[position];
        rule.remaining -= 1;
        let fault = rule.fault.clone();
        if rule.remaining == 0 {
            rules.remove(position);
        }
        Some(fault)
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        // These belong to the connection from the client, not to the request.
        parts.headers.remove(http::header::HOST);
        parts.headers.remove(http::header::CONNECTION);
        let request = Request::from_parts(parts, kube::client::Body::from(body));
        // To its client, a proxy without a server behind it is a connection that breaks.
        let response = self.upstream.send(request).await.map_err(|_| Cut)?;
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(http::header::CONNECTION);
        parts.headers.remove(http::header::TRANSFER_ENCODING);
        let body = body
            .map_err(|error| Box::new(error) as BoxError)
            .boxed_unsync();
        Ok(Response::from_parts(parts, body))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// An answer as the API server would give it.
fn refusal(status: StatusCode, after: Option<Duration>) -> Response<Body> {
    let reason = match status {
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

    fn admits<B>(&self, request: &Request<B>) -> bool {
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
    fn a_match_needs_all_of_its_parts() {
        let matches = RequestMatch::any()
            .method(Method::GET)
            .path("/widgets")
            .watches();
        let admits = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(());
            matches.admits(&request.expect("well formed"))
        };

        assert!(admits(Method::GET, "/apis/g/v1/widgets?limit=1&watch=true"));
        assert!(!admits(Method::GET, "/apis/g/v1/widgets?limit=1"));
        assert!(!admits(Method::GET, "/apis/g/v1/gadgets?watch=true"));
        assert!(!admits(Method::POST, "/apis/g/v1/widgets?watch=true"));
    }
}
