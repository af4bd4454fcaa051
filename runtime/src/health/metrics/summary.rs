//! The metrics as values, for the page of the operator.

use std::collections::BTreeMap;

use serde::Serialize;

/// The metrics that the page shows.
#[derive(Debug, Serialize)]
pub(crate) struct MetricsSummary {
    pub(crate) queue: QueueSummary,
    pub(crate) kinds: Vec<KindSummary>,
    pub(crate) webhooks: Vec<WebhookSummary>,
    /// Other operators that are alive in the peering.
    pub(crate) peers: i64,
}

/// The queue.
#[derive(Debug, Serialize)]
pub(crate) struct QueueSummary {
    pub(crate) waiting: i64,
    /// How long the first object has been waiting, in milliseconds.
    pub(crate) oldest: u64,
    pub(crate) working: i64,
}

/// A kind.
#[derive(Debug, Serialize)]
pub(crate) struct KindSummary {
    pub(crate) kind: String,
    pub(crate) events: BTreeMap<&'static str, u64>,
    pub(crate) restarts: BTreeMap<&'static str, u64>,
    pub(crate) handlers: Vec<HandlerSummary>,
}

/// A handler.
#[derive(Debug, Serialize)]
pub(crate) struct HandlerSummary {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) handler_type: &'static str,
    /// Attempts by their outcome, without outcomes that never were.
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    /// The daemons or timers that accompany objects.
    pub(crate) running: i64,
}

/// A webhook.
#[derive(Debug, Serialize)]
pub(crate) struct WebhookSummary {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) verdicts: BTreeMap<&'static str, u64>,
}
