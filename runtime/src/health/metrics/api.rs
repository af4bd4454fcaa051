//! The metrics of requests to the API server, and the client layer that counts and logs them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use tower_layer::Layer;
use tower_service::Service;
use tracing::{Level, debug, enabled};

use super::instrument::{Counter, Histogram};
use super::labels;
use super::text_format::{MetricType, MetricsText};

labels! {
    /// The verb of a request, as in RBAC rules.
    ApiVerb {
        Get = "get",
        List = "list",
        Watch = "watch",
        Create = "create",
        IndexUpdate = "update",
        Patch = "patch",
        Delete = "delete",
        /// Requests about the API server itself, such as discovery.
        Other = "other",
    }
}

/// The status codes with a counter of their own.
const CODES: [u16; 21] = [
    200, 201, 202, 204, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 501, 502,
    503, 504,
];

/// The counter of all other codes.
const OTHER: usize = CODES.len();

/// The counter of requests without an answer.
const UNANSWERED: usize = CODES.len() + 1;

const COUNTERS: usize = CODES.len() + 2;

/// The target of the log lines about requests.
pub(crate) const REQUEST_LOG: &str = "kopf_runtime::requests";

/// The metrics of requests by verb.
#[derive(Debug)]
pub(crate) struct ApiMetrics {
    verbs: [VerbMetrics; ApiVerb::ALL.len()],
}

#[derive(Debug)]
struct VerbMetrics {
    codes: [Counter; COUNTERS],
    durations: Histogram,
}

/// Wraps a service in an [`ApiMetricsService`].
#[derive(Debug, Clone)]
pub(crate) struct ApiMetricsLayer(pub(crate) Arc<ApiMetrics>);

/// A service that counts and logs its requests.
#[derive(Debug, Clone)]
pub(crate) struct ApiMetricsService<S> {
    service: S,
    metrics: Arc<ApiMetrics>,
}

/// A client as a service, so that a layer can wrap it.
#[derive(Clone)]
struct ClientService(Client);

/// A client that sends its requests with this one and counts them.
pub(crate) fn with_metrics(client: Client, metrics: Arc<ApiMetrics>) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(
        ApiMetricsLayer(metrics).layer(ClientService(client)),
        namespace,
    )
}

// === impl ApiMetrics ===

impl Default for ApiMetrics {
    fn default() -> Self {
        Self {
            verbs: std::array::from_fn(|_| VerbMetrics {
                codes: std::array::from_fn(|_| Counter::default()),
                durations: Histogram::default(),
            }),
        }
    }
}

impl ApiMetrics {
    fn answered(&self, verb: ApiVerb, code: Option<StatusCode>, begun: Instant) {
        let metrics = &self.verbs[verb as usize];
        let index = match code {
            Some(code) => CODES.binary_search(&code.as_u16()).unwrap_or(OTHER),
            None => UNANSWERED,
        };
        metrics.codes[index].add();
        metrics.durations.observe(begun.elapsed());
    }

    /// Omits codes that never occurred, except 200.
    pub(super) fn encode(&self, text: &mut MetricsText) {
        let mut requests = text.family(
            "kopf_api_requests_total",
            MetricType::Counter,
            "Requests to the API server, by the code of the answer.",
        );
        for verb in ApiVerb::ALL {
            let codes = &self.verbs[verb as usize].codes;
            for (index, count) in codes.iter().enumerate() {
                if count.get() == 0 && index != 0 {
                    continue;
                }
                let code = match index {
                    OTHER => "other".to_owned(),
                    UNANSWERED => "none".to_owned(),
                    known => CODES[known].to_string(),
                };
                requests.count(&[("verb", verb.text()), ("code", &code)], count);
            }
        }
        let mut durations = text.family(
            "kopf_api_request_duration_seconds",
            MetricType::Histogram,
            "How long the API server took to begin its answer.",
        );
        for verb in ApiVerb::ALL {
            let histogram = &self.verbs[verb as usize].durations;
            durations.histogram(&[("verb", verb.text())], histogram);
        }
    }
}

// === impl ApiMetricsService ===

impl<S> Layer<S> for ApiMetricsLayer {
    type Service = ApiMetricsService<S>;

    fn layer(&self, service: S) -> ApiMetricsService<S> {
        ApiMetricsService {
            service,
            metrics: Arc::clone(&self.0),
        }
    }
}

impl<S, B> Service<Request<Body>> for ApiMetricsService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let verb = ApiVerb::of(request.method(), request.uri());
        let logged = enabled!(target: REQUEST_LOG, Level::DEBUG).then(|| {
            let (method, uri) = (request.method(), request.uri());
            (method.clone(), uri.clone())
        });
        let begun = Instant::now();
        let metrics = Arc::clone(&self.metrics);
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().ok().map(Response::status);
            metrics.answered(verb, code, begun);
            if let Some((method, uri)) = logged {
                let verb = match verb {
                    ApiVerb::Other => method.as_str().to_lowercase(),
                    verb => verb.text().to_owned(),
                };
                log_request(&verb, &uri, code, begun);
            }
            answer
        })
    }
}

// === impl ClientService ===

impl Service<Request<Body>> for ClientService {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await })
    }
}

// === impl ApiVerb ===

impl ApiVerb {
    fn of(method: &Method, uri: &Uri) -> Self {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let versioned = match parts.next() {
            Some("api") => parts.next(),
            Some("apis") => parts.nth(1),
            _ => None,
        };
        let below: Vec<&str> = parts.take(4).collect();
        let resource = match &*below {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        if versioned.is_none() || resource.is_empty() {
            return Self::Other;
        }
        match *method {
            Method::GET if uri.query().is_some_and(is_watch) => Self::Watch,
            Method::GET if resource.len() == 1 => Self::List,
            Method::GET => Self::Get,
            Method::POST => Self::Create,
            Method::PUT => Self::IndexUpdate,
            Method::PATCH => Self::Patch,
            Method::DELETE => Self::Delete,
            _ => Self::Other,
        }
    }
}

/// Logs a request that was answered, or not.
fn log_request(verb: &str, uri: &Uri, code: Option<StatusCode>, begun: Instant) {
    let path = uri.path_and_query().map_or("/", |it| it.as_str());
    let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
    match code {
        Some(code) => {
            let code = code.as_u16();
            debug!(target: REQUEST_LOG, "{verb} {path}: {code} in {milliseconds:.1} ms");
        }
        None => debug!(target: REQUEST_LOG, "{verb} {path}: no answer in {milliseconds:.1} ms"),
    }
}

fn is_watch(query: &str) -> bool {
    query
        .split('&')
        .any(|part| matches!(part, "watch=true" | "watch=1" | "watch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_for_the_binary_search() {
        assert!(CODES.is_sorted());
    }

    #[test]
    fn requests_have_the_verbs_of_kubernetes() {
        for (method, uri, verb) in [
            (Method::GET, "/api/v1/pods?limit=500", ApiVerb::List),
            (Method::GET, "/api/v1/pods?watch=true&x=y", ApiVerb::Watch),
            (Method::GET, "/api/v1/namespaces", ApiVerb::List),
            (Method::GET, "/api/v1/namespaces/a", ApiVerb::Get),
            (Method::GET, "/api/v1/namespaces/a/pods", ApiVerb::List),
            (Method::GET, "/api/v1/namespaces/a/pods/p", ApiVerb::Get),
            (Method::GET, "/apis/kopf.dev/v1/things", ApiVerb::List),
            (
                Method::GET,
                "/apis/kopf.dev/v1/things/t/scale",
                ApiVerb::Get,
            ),
            (Method::POST, "/api/v1/namespaces/a/events", ApiVerb::Create),
            (
                Method::PATCH,
                "/apis/kopf.dev/v1/namespaces/a/things/t/status",
                ApiVerb::Patch,
            ),
            (Method::PUT, "/api/v1/nodes/n", ApiVerb::IndexUpdate),
            (Method::DELETE, "/api/v1/nodes/n", ApiVerb::Delete),
            (Method::GET, "/apis", ApiVerb::Other),
            (Method::GET, "/apis/kopf.dev/v1", ApiVerb::Other),
            (Method::GET, "/version", ApiVerb::Other),
            (Method::GET, "/", ApiVerb::Other),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(ApiVerb::of(&method, &uri), verb, "{method} {uri}");
        }
    }
}
