//! The metrics of a webhook: its reviews and their durations.

use std::sync::Arc;
use std::time::Duration;

use super::instrument::{Counter, Histogram};
use super::labels;
use super::summary::WebhookSummary;
use super::text_format::{MetricType, MetricsText};

/// The metrics of one webhook.
#[derive(Debug)]
pub(crate) struct WebhookMetrics {
    kind: String,
    id: String,
    durations: Histogram,
    verdicts: [Counter; ReviewOutcome::ALL.len()],
}

labels! {
    /// The verdict of a webhook.
    ReviewOutcome {
        Allowed = "allowed",
        Denied = "denied",
        Failed = "failed",
    }
}

// === impl WebhookMetrics ===

impl WebhookMetrics {
    pub(super) fn new(kind: String, id: &str) -> Self {
        Self {
            kind,
            id: id.to_owned(),
            durations: Histogram::default(),
            verdicts: Default::default(),
        }
    }

    pub(crate) fn reviewed(&self, verdict: ReviewOutcome, time: Duration) {
        self.durations.observe(time);
        self.verdicts[verdict as usize].add();
    }

    pub(super) fn summary(&self) -> WebhookSummary {
        let verdicts = ReviewOutcome::ALL.map(|it| (it.text(), self.verdicts[it as usize].get()));
        WebhookSummary {
            kind: self.kind.clone(),
            id: self.id.clone(),
            verdicts: verdicts.into(),
        }
    }
}

/// Encodes the metrics of all webhooks.
pub(super) fn encode(text: &mut MetricsText, webhooks: &[Arc<WebhookMetrics>]) {
    let mut durations = text.family(
        "kopf_webhook_duration_seconds",
        MetricType::Histogram,
        "How long reviews took.",
    );
    for webhook in webhooks {
        let labels = [("kind", &*webhook.kind), ("webhook", &*webhook.id)];
        durations.histogram(&labels, &webhook.durations);
    }
    let mut reviews = text.family(
        "kopf_webhook_reviews_total",
        MetricType::Counter,
        "Reviews by what the webhook said.",
    );
    for webhook in webhooks {
        for verdict in ReviewOutcome::ALL {
            let labels = [
                ("kind", &*webhook.kind),
                ("webhook", &*webhook.id),
                ("verdict", verdict.text()),
            ];
            reviews.count(&labels, &webhook.verdicts[verdict as usize]);
        }
    }
}
