//! Tells Kubernetes, and whoever else asks by HTTP, how the operator is.
//!
//! The endpoint is served by a thread of its own: when handlers block all threads of the operator,
//! there is still somebody to say so.

pub(crate) mod endpoint;
pub(crate) mod metrics;
pub(crate) mod probe;
mod report;
mod server;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::info;

use self::endpoint::Endpoint;
use self::probe::Prober;
use crate::coordination::pause::PauseGate;
use crate::health::metrics::Metrics;
use crate::index::Indices;
use crate::settings::HealthSettings;
use crate::task::SupervisedThread;
use crate::task::heartbeat::{Heartbeat, Heartbeats};

/// How often the runtime shows that it lets tasks run.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// What the endpoint tells about.
pub(crate) struct Health {
    pub(crate) heartbeats: Heartbeats,
    pub(crate) pause_gate: PauseGate,
    pub(crate) metrics: Metrics,
    pub(crate) indices: Indices,
    pub(crate) prober: Prober,
    pub(crate) settings: HealthSettings,
    /// Whether API requests of others wait for this operator.
    pub(crate) serves_webhooks: bool,
}

/// Why the operator is not ready, as the endpoint would tell it; nothing if it is.
pub(crate) fn unreadiness(
    heartbeats: &Heartbeats,
    pause_gate: &PauseGate,
    serves_webhooks: bool,
) -> Vec<String> {
    let standing = report::Standing {
        phase: heartbeats.phase(),
        stuck: Vec::new(),
        conditions: heartbeats.conditions(),
        pause: pause_gate.pause(),
        serves_webhooks,
    };
    standing.unreadiness()
}

/// The endpoint cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {endpoint} for health checks")]
pub(crate) struct Error {
    endpoint: Endpoint,
    #[source]
    source: io::Error,
}

impl Health {
    /// Begins to serve the endpoint, until `stop`.
    pub(crate) fn serve(
        self,
        endpoint: &Endpoint,
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

/// Shows again and again that tasks of this runtime are run.
pub(crate) async fn beat(heartbeat: Heartbeat) {
    loop {
        heartbeat.within(HEARTBEAT);
        tokio::time::sleep(HEARTBEAT).await;
    }
}

fn bind(endpoint: &Endpoint) -> io::Result<TcpListener> {
    let addresses: Vec<SocketAddr> = endpoint.addresses()?;
    let listener = TcpListener::bind(&*addresses)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
