//! The HTTP server of the health endpoint, on one thread of its own.
//!
//! The thread also advances the clock of the heartbeats, by which tasks count as stuck. Any client
//! may connect: each connection serves one request within a deadline, and when there are too many,
//! the server drops the oldest. It shares no code with the webhook server, which runs on the async
//! runtime of the operator, speaks TLS and HTTP/2, and keeps connections open.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Map;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::Health;
use super::endpoint::{METRICS, READINESS};
use super::probe::ProbeOutcome;
use super::probe_response::{HealthState, ProbeResponse, ProbeStatus};
use crate::coordination::pause::PauseReason;
use crate::health::metrics;
use crate::task::heartbeat::OperatorPhase;

/// How often the clock of the heartbeats is advanced.
const TICK: Duration = Duration::from_millis(250);

/// How many connections are open at the same time.
const CONNECTIONS: usize = 128;

/// How long a client may take to send a request and to read the response.
const DEADLINE: Duration = Duration::from_secs(15);

/// How long a client may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The size of a request: probes send a line and some headers.
const REQUEST_BYTES: usize = 16 * 1024;

/// How long the server waits after the system has failed to accept a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The open connections, of which there are at most [`CONNECTIONS`].
#[derive(Default)]
struct HealthConnections {
    tasks: JoinSet<()>,
    order: VecDeque<AbortHandle>,
}

/// Serves until `stop`, in the thread that calls this.
pub(super) fn run(
    listener: TcpListener,
    health: Health,
    liveness: String,
    stop: &CancellationToken,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let service = Arc::new(HealthService { health, liveness });
        tokio::select! {
            () = stop.cancelled() => {}
            () = advance_heartbeats(&service.health) => {}
            () = accept(&listener, &service) => {}
        }
        Ok(())
    })
}

/// Advances the clock of the heartbeats, but not by the time in which this thread did not run.
async fn advance_heartbeats(health: &Health) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        let now = ticks.tick().await;
        health
            .heartbeats
            .advance(now.duration_since(last).min(2 * TICK));
        last = now;
    }
}

async fn accept(listener: &tokio::net::TcpListener, service: &Arc<HealthService>) {
    let mut connections = HealthConnections::default();
    loop {
        tokio::select! {
            () = connections.reap() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.admit(stream, service),
                // Most likely there are no free file descriptors; wait until there are.
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            },
        }
    }
}

// === impl HealthConnections ===

impl HealthConnections {
    fn admit(&mut self, stream: TcpStream, service: &Arc<HealthService>) {
        self.order.retain(|connection| !connection.is_finished());
        if self.order.len() >= CONNECTIONS
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        let service = Arc::clone(service);
        let connection = self.tasks.spawn(async move {
            match tokio::time::timeout(DEADLINE, serve(stream, service)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!("a connection of a health check failed: {error}"),
                Err(_) => debug!("a health check took too long"),
            }
        });
        self.order.push_back(connection);
    }

    async fn reap(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

async fn serve(stream: TcpStream, service: Arc<HealthService>) -> Result<(), hyper::Error> {
    let answer = service_fn(|request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(&request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

/// Answers the requests of all connections.
struct HealthService {
    health: Health,
    /// The path of the liveness probe.
    liveness: String,
}

impl HealthService {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let known = [&*self.liveness, READINESS, METRICS].contains(&path);
        if !known {
            return text(StatusCode::NOT_FOUND, "there is nothing at this path\n");
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refusal = text(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET and HEAD are allowed here\n",
            );
            let allowed = HeaderValue::from_static("GET, HEAD");
            refusal.headers_mut().insert(header::ALLOW, allowed);
            return refusal;
        }
        match path {
            READINESS => json(&self.state().readiness()),
            METRICS => self.metrics(),
            _ => json(&self.liveness().await),
        }
    }

    /// Does not call probe handlers if the operator is stuck: they would be stuck, too.
    async fn liveness(&self) -> ProbeResponse {
        let state = self.state();
        if !state.is_alive() {
            return state.liveness(ProbeOutcome::Results(Map::new()));
        }
        let probed = match state.stage {
            // Probe handlers may need what startup handlers prepare.
            OperatorPhase::Starting => ProbeOutcome::Results(Map::new()),
            _ => self.health.probes.probe().await,
        };
        self.state().liveness(probed)
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let health = &self.health;
        let state = self.state();
        let text = health.metrics.encode(&metrics::OperatorGauges {
            pause: state.pause.as_ref().map(PauseReason::reason),
            leads: health.pause_gate.may_write(),
            ready: state.readiness().status == ProbeStatus::Ok,
            indices: health.indices.sizes(),
        });
        let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response(StatusCode::OK, content_type, text)
    }

    fn state(&self) -> HealthState {
        let health = &self.health;
        HealthState {
            stage: health.heartbeats.phase(),
            stuck: health.heartbeats.stuck(health.settings.stuck_after),
            conditions: health.heartbeats.conditions(),
            pause: health.pause_gate.pause(),
            serves_webhooks: health.serves_webhooks,
        }
    }
}

fn json(probe: &ProbeResponse) -> Response<Full<Bytes>> {
    let status = match probe.status {
        ProbeStatus::Ok => StatusCode::OK,
        ProbeStatus::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ProbeStatus::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let content_type = HeaderValue::from_static("application/json");
    response(status, content_type, probe.body.to_string())
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response(status, content_type, text.to_owned())
}

fn response(status: StatusCode, content_type: HeaderValue, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    // Health changes at any time.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
