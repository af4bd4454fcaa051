//! The health endpoint and the metrics of an operator, from before its startup to after its cleanup.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::state::OperatorState;
use super::{Error, Operator};
use crate::health::Health;
use crate::health::metrics::Metrics;
use crate::health::probe::{ProbeReceiver, probe_channel};
use crate::task::{SupervisedThread, TaskEnd};

/// The state, the metrics and the health endpoint of an operator.
pub(super) struct Observability {
    pub(super) state: OperatorState,
    pub(super) metrics: Metrics,
    /// Requests of the health endpoint for the probe handlers.
    pub(super) probe_requests: Option<ProbeReceiver>,
    pub(super) health_server: HealthServerTask,
}

/// The thread of the health endpoint; it stops when this is dropped.
pub(super) enum HealthServerTask {
    Disabled,
    Running {
        thread: SupervisedThread,
        _stop: DropGuard,
    },
}

// === impl Observability ===

impl Observability {
    /// Starts the health endpoint, if the operator has one.
    pub(super) fn start(operator: &Operator) -> Result<Self, Error> {
        let (probes, probe_requests) = probe_channel(&operator.handlers.probes);
        let mut observability = Self {
            state: operator.state.clone(),
            metrics: Metrics::new(operator.name, Arc::clone(&operator.requests)),
            probe_requests: None,
            health_server: HealthServerTask::Disabled,
        };
        let Some(endpoint) = &operator.liveness else {
            return Ok(observability);
        };
        let mut resources = operator.resources.iter();
        let health = Health {
            heartbeats: observability.state.heartbeats.clone(),
            pause_gate: observability.state.pause_gate.clone(),
            metrics: observability.metrics.clone(),
            indices: operator.indices.clone(),
            probes,
            settings: operator.settings.health.clone(),
            serves_webhooks: resources.any(|resource| !resource.webhooks.is_empty()),
        };
        let stop = CancellationToken::new();
        let thread = health.serve(endpoint, stop.clone());
        observability.probe_requests = probe_requests;
        observability.health_server = HealthServerTask::Running {
            thread: thread.map_err(|error| Error::Health(Box::new(error)))?,
            _stop: stop.drop_guard(),
        };
        Ok(observability)
    }
}

// === impl HealthServerTask ===

impl HealthServerTask {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    /// Waits until the thread ends, which only a defect can cause.
    pub(super) async fn ended(&mut self) -> TaskEnd {
        match self {
            Self::Disabled => std::future::pending().await,
            Self::Running { thread, .. } => thread.ended().await,
        }
    }
}
