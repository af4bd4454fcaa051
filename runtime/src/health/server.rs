//! The HTTP server of the health endpoint: one thread, few and short connections.
//!
//! It also keeps the watch by which parts are late. Strangers may connect: each connection serves
//! one request within a deadline, and when there are too many, the oldest gives way.

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
use super::probe::Probed;
use super::report::{Report, Standing, Status};
use crate::coordination::pause::PauseReason;
use crate::health::metrics;
use crate::task::heartbeat::OperatorPhase;

/// How often the watch is moved on.
const TICK: Duration = Duration::from_millis(250);

/// How many connections are open at the same time.
const CONNECTIONS: usize = 128;

/// How long a client may take to ask, and to take the answer.
const DEADLINE: Duration = Duration::from_secs(15);

/// How long a client may take to send its request.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// How much of a request is read: probes send a line and some headers.
const REQUEST_BYTES: usize = 16 * 1024;

/// How long the server pauses after the system has refused a connection.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// The connections of a server, of which there are never too many.
#[derive(Default)]
struct Visitors {
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
        let desk = Arc::new(Desk { health, liveness });
        tokio::select! {
            () = stop.cancelled() => {}
            () = keep_watch(&desk.health) => {}
            () = accept(&listener, &desk) => {}
        }
        Ok(())
    })
}

/// Lets the time pass by which parts are late, but none in which this thread did not run.
async fn keep_watch(health: &Health) {
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

async fn accept(listener: &tokio::net::TcpListener, desk: &Arc<Desk>) {
    let mut visitors = Visitors::default();
    loop {
        tokio::select! {
            () = visitors.see_off() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => visitors.admit(stream, desk),
                // Out of file descriptors, most likely: some are going to be free again.
                Err(_) => tokio::time::sleep(REFUSED_PAUSE).await,
            },
        }
    }
}

// === impl Visitors ===

impl Visitors {
    fn admit(&mut self, stream: TcpStream, desk: &Arc<Desk>) {
        self.order.retain(|visitor| !visitor.is_finished());
        if self.order.len() >= CONNECTIONS
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        let desk = Arc::clone(desk);
        let visit = self.tasks.spawn(async move {
            match tokio::time::timeout(DEADLINE, serve(stream, desk)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!("a health check ended badly: {error}"),
                Err(_) => debug!("a health check took too long"),
            }
        });
        self.order.push_back(visit);
    }

    async fn see_off(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

async fn serve(stream: TcpStream, desk: Arc<Desk>) -> Result<(), hyper::Error> {
    let answer = service_fn(|request| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(desk.answer(&request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_WITHIN)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

/// Where requests are answered.
struct Desk {
    health: Health,
    /// The path of the liveness probe.
    liveness: String,
}

impl Desk {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let known = [&*self.liveness, READINESS, METRICS].contains(&path);
        if !known {
            return text(StatusCode::NOT_FOUND, "there is nothing at this path\n");
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refusal = text(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET makes sense here\n",
            );
            let allowed = HeaderValue::from_static("GET, HEAD");
            refusal.headers_mut().insert(header::ALLOW, allowed);
            return refusal;
        }
        match path {
            READINESS => json(&self.standing().readiness()),
            METRICS => self.metrics(),
            _ => json(&self.liveness().await),
        }
    }

    /// Probe handlers cannot say anything about an operator that is stuck.
    async fn liveness(&self) -> Report {
        let standing = self.standing();
        if !standing.is_alive() {
            return standing.liveness(Probed::Results(Map::new()));
        }
        let probed = match standing.phase {
            // They may need what startup handlers prepare.
            OperatorPhase::Starting => Probed::Results(Map::new()),
            _ => self.health.prober.ask().await,
        };
        self.standing().liveness(probed)
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let health = &self.health;
        let standing = self.standing();
        let told = health.metrics.tell(&metrics::Standing {
            pause: standing.pause.as_ref().map(PauseReason::reason),
            leads: health.pause_gate.may_write(),
            ready: standing.readiness().status == Status::Well,
            indices: health.indices.sizes(),
        });
        let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response(StatusCode::OK, content_type, told)
    }

    fn standing(&self) -> Standing {
        let health = &self.health;
        Standing {
            phase: health.heartbeats.phase(),
            stuck: health.heartbeats.stuck(health.settings.stuck_after),
            conditions: health.heartbeats.conditions(),
            pause: health.pause_gate.pause(),
            serves_webhooks: health.serves_webhooks,
        }
    }
}

fn json(report: &Report) -> Response<Full<Bytes>> {
    let status = match report.status {
        Status::Well => StatusCode::OK,
        Status::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Status::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let content_type = HeaderValue::from_static("application/json");
    response(status, content_type, report.body.to_string())
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
    // How an operator is does not stay true for long.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
