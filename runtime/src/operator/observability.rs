//! What can be seen of an operator from outside, from before its startup to after its cleanup.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::embedded::Insight;
use super::{Error, Operator};
use crate::coordination::pause::{PauseGate, PauseSwitch};
use crate::health::Health;
use crate::health::metrics::Metrics;
use crate::health::probe::{Questions, prober};
use crate::index::readiness::Gate;
use crate::task::heartbeat::Heartbeats;
use crate::task::{SupervisedThread, TaskEnd};

/// Where the parts of an operator say how they are.
pub(super) struct OperatorStatus {
    pub(super) switch: PauseSwitch,
    pub(super) pause_gate: PauseGate,
    pub(super) heartbeats: Heartbeats,
    pub(super) metrics: Metrics,
    /// Whether everything was listed that is handled.
    pub(super) listed: Gate,
    /// Whether everything was listed that is indexed, and is in the indices.
    pub(super) indexed: Gate,
    /// What probe handlers are asked.
    pub(super) questions: Option<Questions>,
    pub(super) served: Served,
}

/// The endpoint that tells it; nothing is served any more when this is dropped.
pub(super) enum Served {
    Nowhere,
    By {
        thread: SupervisedThread,
        _stop: DropGuard,
    },
}

impl OperatorStatus {
    /// Begins to tell how the operator is, if anybody wants to know.
    pub(super) fn begin(operator: &Operator) -> Result<Self, Error> {
        let Insight {
            switch,
            pause_gate,
            heartbeats,
            listed,
            indexed,
        } = operator.insight.clone();
        let metrics = Metrics::new(operator.name, Arc::clone(&operator.requests));
        let (prober, questions) = prober(&operator.handlers.probes);
        let mut watched = Self {
            switch,
            pause_gate,
            heartbeats,
            metrics,
            listed,
            indexed,
            questions: None,
            served: Served::Nowhere,
        };
        let Some(endpoint) = &operator.liveness else {
            return Ok(watched);
        };
        let mut resources = operator.resources.iter();
        let health = Health {
            heartbeats: watched.heartbeats.clone(),
            pause_gate: watched.pause_gate.clone(),
            metrics: watched.metrics.clone(),
            indices: operator.indices.clone(),
            prober,
            settings: operator.settings.health.clone(),
            serves_webhooks: resources.any(|resource| !resource.webhooks.is_empty()),
        };
        let stop = CancellationToken::new();
        let thread = health.serve(endpoint, stop.clone());
        watched.questions = questions;
        watched.served = Served::By {
            thread: thread.map_err(|error| Error::Health(Box::new(error)))?,
            _stop: stop.drop_guard(),
        };
        Ok(watched)
    }
}

// === impl Served ===

impl Served {
    pub(super) fn is_somewhere(&self) -> bool {
        matches!(self, Self::By { .. })
    }

    /// Waits until the endpoint is gone, which only a defect can cause.
    pub(super) async fn ended(&mut self) -> TaskEnd {
        match self {
            Self::Nowhere => std::future::pending().await,
            Self::By { thread, .. } => thread.ended().await,
        }
    }
}
