//! The health endpoint, the page and the metrics of an operator, from before its startup to after its cleanup.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::state::OperatorState;
use super::{Error, Operator};
use crate::health::Health;
use crate::health::metrics::Metrics;
use crate::health::probe::{ProbeReceiver, probe_channel};
use crate::page::Page;
use crate::page::journal::PageJournal;
use crate::page::running_parts::RunningParts;
use crate::task::{SupervisedThread, TaskEnd};

/// The state, the metrics and the health endpoint of an operator.
pub(super) struct Observability {
    pub(super) state: OperatorState,
    pub(super) metrics: Metrics,
    /// Requests of the health endpoint for the probe handlers.
    pub(super) probe_requests: Option<ProbeReceiver>,
    pub(super) health_server: ServerThread,
    /// What happens, for the page.
    pub(super) journal: PageJournal,
    /// What the page asks once it runs.
    pub(super) page_parts: RunningParts,
    pub(super) page_server: ServerThread,
}

/// The thread of the health endpoint or of the page; it stops when this is dropped.
pub(super) enum ServerThread {
    Disabled,
    Running {
        thread: SupervisedThread,
        _stop: DropGuard,
    },
}

// === impl Observability ===

impl Observability {
    /// Starts the health endpoint and the page, if the operator has them.
    pub(super) fn start(operator: &Operator) -> Result<Self, Error> {
        let (probes, probe_requests) = probe_channel(&operator.handlers.probes);
        let mut observability = Self {
            state: operator.state.clone(),
            metrics: Metrics::new(operator.name, Arc::clone(&operator.requests)),
            probe_requests: None,
            health_server: ServerThread::Disabled,
            journal: PageJournal::default(),
            page_parts: RunningParts::default(),
            page_server: ServerThread::Disabled,
        };
        observability.start_page(operator)?;
        let Some(endpoint) = &operator.liveness else {
            return Ok(observability);
        };
        let health = Health {
            heartbeats: observability.state.heartbeats.clone(),
            pause_gate: observability.state.pause_gate.clone(),
            metrics: observability.metrics.clone(),
            indices: operator.indices.clone(),
            probes,
            settings: operator.settings.health.clone(),
            serves_webhooks: serves_webhooks(operator),
        };
        let stop = CancellationToken::new();
        let thread = health.serve(endpoint, stop.clone());
        observability.probe_requests = probe_requests;
        observability.health_server = ServerThread::Running {
            thread: thread.map_err(|error| Error::Health(Box::new(error)))?,
            _stop: stop.drop_guard(),
        };
        Ok(observability)
    }

    fn start_page(&mut self, operator: &Operator) -> Result<(), Error> {
        let Some(setup) = &operator.page else {
            return Ok(());
        };
        self.journal = PageJournal::keeping();
        let page = Page {
            operator: operator.name,
            version: operator.version,
            journal: self.journal.clone(),
            heartbeats: self.state.heartbeats.clone(),
            pause_gate: self.state.pause_gate.clone(),
            metrics: self.metrics.clone(),
            serves_webhooks: serves_webhooks(operator),
            parts: self.page_parts.clone(),
        };
        let stop = CancellationToken::new();
        let thread = page.serve(setup, stop.clone());
        self.page_server = ServerThread::Running {
            thread: thread.map_err(|error| Error::Page(Box::new(error)))?,
            _stop: stop.drop_guard(),
        };
        Ok(())
    }
}

fn serves_webhooks(operator: &Operator) -> bool {
    let mut resources = operator.resources.iter();
    resources.any(|resource| !resource.webhooks.is_empty())
}

// === impl ServerThread ===

impl ServerThread {
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
