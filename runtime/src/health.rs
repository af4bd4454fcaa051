//! The health endpoint: liveness and readiness probes and metrics over HTTP.
//!
//! A thread of its own serves the endpoint, so that it still answers when handlers block all
//! threads of the async runtime.

pub(crate) mod endpoint;
pub(crate) mod metrics;
pub(crate) mod probe;
mod probe_response;
mod server;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::info;

use self::endpoint::HealthEndpoint;
use self::probe::ProbeSender;
use crate::coordination::pause::PauseGate;
use crate::health::metrics::Metrics;
use crate::index::Indices;
use crate::settings::HealthSettings;
use crate::task::SupervisedThread;
use crate::task::heartbeat::{Heartbeat, Heartbeats};

/// How often a task proves that the async runtime runs tasks.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The parts of the operator that the endpoint reads.
pub(crate) struct Health {
    pub(crate) heartbeats: Heartbeats,
    pub(crate) pause_gate: PauseGate,
    pub(crate) metrics: Metrics,
    pub(crate) indices: Indices,
    pub(crate) probes: ProbeSender,
    pub(crate) settings: HealthSettings,
    /// True if requests to the API server wait for webhooks of this operator.
    pub(crate) serves_webhooks: bool,
}

/// The problems that make the operator unready, as the readiness probe reports them; empty if it
/// is ready.
pub(crate) fn unreadiness(
    heartbeats: &Heartbeats,
    pause_gate: &PauseGate,
    serves_webhooks: bool,
) -> Vec<String> {
    let state = probe_response::HealthState {
        stage: heartbeats.phase(),
        stuck: Vec::new(),
        conditions: heartbeats.conditions(),
        pause: pause_gate.pause(),
        serves_webhooks,
    };
    state.unreadiness()
}

/// The endpoint cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {endpoint} for health checks")]
pub(crate) struct Error {
    endpoint: HealthEndpoint,
    #[source]
    source: io::Error,
}

impl Health {
    /// Starts to serve the endpoint, until `stop`.
    pub(crate) fn serve(
        self,
        endpoint: &HealthEndpoint,
        stop: CancellationToken,
    ) -> Result<SupervisedThread, Error> {
        let failed = |source| Error {
            endpoint: endpoint.clone(),
            source,
        };
        let listener = bind(endpoint).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        info!("health is served at {}", endpoint.at(address));
        let path = endpoint.path().to_owned();
        SupervisedThread::start("health", move || server::run(listener, self, path, &stop))
            .map_err(failed)
    }
}

/// Proves again and again that the async runtime runs tasks.
pub(crate) async fn beat(heartbeat: Heartbeat) {
    loop {
        heartbeat.within(HEARTBEAT);
        tokio::time::sleep(HEARTBEAT).await;
    }
}

fn bind(endpoint: &HealthEndpoint) -> io::Result<TcpListener> {
    let addresses: Vec<SocketAddr> = endpoint.addresses()?;
    let listener = TcpListener::bind(&*addresses)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
