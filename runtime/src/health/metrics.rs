//! The metrics of the operator, and their encoding for Prometheus.
//!
//! All counters are allocated before the first event: to count is to add to an atomic number,
//! without a lock and without an allocation. Labels come from declarations, never from objects, so
//! that the number of series is bounded.

pub(crate) mod api;
pub(crate) mod instrument;
mod kind;
mod queue;
mod summary;
mod text_format;
mod webhook;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::api::ApiMetrics;
use self::instrument::{Counter, Gauge};
pub(crate) use self::kind::{
    AttemptOutcome, EventLabel, HandlerMetrics, HandlerType, KindMetrics, WatchRestart,
};
pub(crate) use self::queue::QueueMetrics;
pub(crate) use self::summary::MetricsSummary;
use self::text_format::{MetricType, MetricsText};
pub(crate) use self::webhook::{ReviewOutcome, WebhookMetrics};

/// All metrics of an operator; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    inner: Arc<MetricsInner>,
}

#[derive(Debug)]
struct MetricsInner {
    operator: &'static str,
    api: Arc<ApiMetrics>,
    queue: Arc<QueueMetrics>,
    posting: Arc<PostingMetrics>,
    peers: Arc<Gauge>,
    /// Locked to declare and to encode, never to count.
    kinds: Mutex<Vec<Arc<KindMetrics>>>,
    /// Locked to declare and to encode, never to count.
    webhooks: Mutex<Vec<Arc<WebhookMetrics>>>,
}

/// Counts Kubernetes events by their outcome.
#[derive(Debug, Default)]
pub(crate) struct PostingMetrics {
    pub(crate) posted: Counter,
    pub(crate) failed: Counter,
    pub(crate) dropped: Counter,
}

/// One contribution to a gauge that is a sum; dropping it removes the contribution.
#[derive(Debug)]
pub(crate) struct GaugeShare {
    sum: Arc<Gauge>,
    value: i64,
}

/// The gauges of the operator as a whole, read when metrics are encoded.
#[derive(Debug, Clone)]
pub(crate) struct OperatorGauges {
    /// The reason of the pause, if the operator is paused.
    pub(crate) pause: Option<&'static str>,
    pub(crate) leads: bool,
    pub(crate) ready: bool,
    /// Indices with the number of their keys.
    pub(crate) indices: Vec<(&'static str, usize)>,
}

macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$of])* $variant,)+ }

        impl $name {
            pub(crate) const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}
use labels;

/// Every reason for a pause; [`PauseReason::reason`](crate::coordination::pause::PauseReason::reason) is one of them.
const PAUSES: [&str; 6] = [
    "starting",
    "peers",
    "tie",
    "no-peering",
    "standby",
    "lease-lost",
];

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(operator: &'static str, api: Arc<ApiMetrics>) -> Self {
        Self {
            inner: Arc::new(MetricsInner {
                operator,
                api,
                queue: Arc::default(),
                posting: Arc::default(),
                peers: Arc::default(),
                kinds: Mutex::default(),
                webhooks: Mutex::default(),
            }),
        }
    }

    /// The metrics of a kind; the same for the same kind.
    pub(crate) fn kind(&self, kind: &str, group: &str) -> Arc<KindMetrics> {
        let name = full_name(kind, group);
        let mut kinds = locked(&self.inner.kinds);
        if let Some(known) = kinds.iter().find(|known| known.name() == name) {
            return Arc::clone(known);
        }
        let made = Arc::new(KindMetrics::new(name));
        kinds.push(Arc::clone(&made));
        made
    }

    /// New metrics of a webhook.
    pub(crate) fn webhook(&self, kind: &str, group: &str, id: &str) -> Arc<WebhookMetrics> {
        let made = Arc::new(WebhookMetrics::new(full_name(kind, group), id));
        locked(&self.inner.webhooks).push(Arc::clone(&made));
        made
    }

    pub(crate) fn queue(&self) -> Arc<QueueMetrics> {
        Arc::clone(&self.inner.queue)
    }

    pub(crate) fn posting(&self) -> Arc<PostingMetrics> {
        Arc::clone(&self.inner.posting)
    }

    /// The contribution of one peering object to the number of peers.
    pub(crate) fn peers(&self) -> GaugeShare {
        GaugeShare {
            sum: Arc::clone(&self.inner.peers),
            value: 0,
        }
    }

    /// The metrics as values.
    pub(crate) fn summary(&self) -> MetricsSummary {
        let kinds = locked(&self.inner.kinds).clone();
        let webhooks = locked(&self.inner.webhooks).clone();
        MetricsSummary {
            queue: self.inner.queue.summary(),
            kinds: kinds.iter().map(|kind| kind.summary()).collect(),
            webhooks: webhooks.iter().map(|webhook| webhook.summary()).collect(),
            peers: self.inner.peers.get(),
        }
    }

    /// All metrics in Prometheus' text format.
    pub(crate) fn encode(&self, gauges: &OperatorGauges) -> String {
        let mut text = MetricsText::default();
        let build = [
            ("operator", self.inner.operator),
            ("version", env!("CARGO_PKG_VERSION")),
        ];
        text.family(
            "kopf_build_info",
            MetricType::Gauge,
            "Always 1; the labels tell what runs.",
        )
        .sample(&build, 1);
        self.encode_operator(&mut text, gauges);
        self.inner.queue.encode(&mut text);
        let kinds = locked(&self.inner.kinds).clone();
        kind::encode(&mut text, &kinds);
        self.inner.api.encode(&mut text);
        self.inner.posting.encode(&mut text);
        webhook::encode(&mut text, &locked(&self.inner.webhooks));
        text.into_text()
    }

    fn encode_operator(&self, text: &mut MetricsText, gauges: &OperatorGauges) {
        text.family(
            "kopf_ready",
            MetricType::Gauge,
            "Whether the readiness probe succeeds.",
        )
        .sample(&[], gauges.ready.into());
        let mut paused = text.family(
            "kopf_paused",
            MetricType::Gauge,
            "Whether the operator pauses for this reason.",
        );
        for reason in PAUSES {
            let holds = gauges.pause == Some(reason);
            paused.sample(&[("reason", reason)], holds.into());
        }
        text.family(
            "kopf_leader",
            MetricType::Gauge,
            "Whether this replica is the leader; always 1 without leader election.",
        )
        .sample(&[], gauges.leads.into());
        text.family(
            "kopf_peers",
            MetricType::Gauge,
            "Other operators that are alive in the peering.",
        )
        .sample(&[], self.inner.peers.get());
        let mut keys = text.family("kopf_index_keys", MetricType::Gauge, "Keys of an index.");
        for (index, count) in &gauges.indices {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            keys.sample(&[("index", index)], count);
        }
    }
}

// === impl PostingMetrics ===

impl PostingMetrics {
    fn encode(&self, text: &mut MetricsText) {
        let mut posts = text.family(
            "kopf_kubernetes_events_total",
            MetricType::Counter,
            "Kubernetes events by what became of them.",
        );
        for (outcome, count) in [
            ("posted", &self.posted),
            ("failed", &self.failed),
            ("dropped", &self.dropped),
        ] {
            posts.count(&[("outcome", outcome)], count);
        }
    }
}

// === impl GaugeShare ===

impl GaugeShare {
    pub(crate) fn set(&mut self, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.sum.add(count - self.value);
        self.value = count;
    }
}

impl Drop for GaugeShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A kind as `kubectl` names it, such as `Deployment.apps`.
fn full_name(kind: &str, group: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(metrics: &Metrics) -> String {
        metrics.encode(&OperatorGauges {
            pause: Some("peers"),
            leads: true,
            ready: false,
            indices: vec![("by_size", 3)],
        })
    }

    #[test]
    fn counted_events_are_encoded() {
        let metrics = Metrics::new("op", Arc::default());
        let kind = metrics.kind("Widget", "test.dev");
        kind.count_event(EventLabel::Added);
        kind.count_event(EventLabel::Added);
        let handler = kind.handler("create_fn", HandlerType::Change);
        handler.begin(0).end(AttemptOutcome::Temporary);
        handler.begin(1).end(AttemptOutcome::Succeeded);
        let queue = metrics.queue();
        queue.waiting(3, Some(queue.now()));
        let text = encoded(&metrics);
        for line in [
            "# TYPE kopf_events_total counter\n",
            "kopf_events_total{kind=\"Widget.test.dev\",type=\"added\"} 2\n",
            "kopf_handler_outcomes_total{kind=\"Widget.test.dev\",handler=\"create_fn\",outcome=\"temporary\"} 1\n",
            "kopf_handler_retries_total{kind=\"Widget.test.dev\",handler=\"create_fn\"} 1\n",
            "kopf_handler_duration_seconds_count{kind=\"Widget.test.dev\",handler=\"create_fn\"} 2\n",
            "kopf_paused{reason=\"peers\"} 1\n",
            "kopf_paused{reason=\"standby\"} 0\n",
            "kopf_ready 0\n",
            "kopf_index_keys{index=\"by_size\"} 3\n",
            "kopf_leader 1\n",
            "kopf_queue_depth 3\n",
        ] {
            assert!(text.contains(line), "{text} lacks {line}");
        }
    }

    #[test]
    fn a_handler_with_several_causes_is_counted_as_one() {
        let metrics = Metrics::new("op", Arc::default());
        let kind = metrics.kind("Pod", "");
        let again = metrics.kind("Pod", "").handler("fn", HandlerType::Change);
        assert!(Arc::ptr_eq(
            &kind.handler("fn", HandlerType::Change),
            &again
        ));
    }

    #[test]
    fn shares_add_up_and_end_when_they_are_dropped() {
        let metrics = Metrics::new("op", Arc::default());
        let (mut one, mut two) = (metrics.peers(), metrics.peers());
        one.set(2);
        two.set(3);
        one.set(1);
        assert!(encoded(&metrics).contains("kopf_peers 4\n"));
        drop(two);
        assert!(encoded(&metrics).contains("kopf_peers 1\n"));
    }
}
