//! What the operator counts and measures, and how that is told to Prometheus.
//!
//! Everything that can be counted has its place before anything happens: to count is to add to an
//! atomic number, without a lock and without memory. Labels are made of declarations, never of
//! objects, so that there are as many series as the operator has parts.

pub(crate) mod api;
pub(crate) mod instrument;
mod page;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::api::ApiMetrics;
use self::instrument::{Counter, Gauge, Histogram};
use self::page::{Page, Type};

/// All that is counted; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    operator: &'static str,
    api: Arc<ApiMetrics>,
    queue: Arc<QueueMetrics>,
    posting: Arc<PostingMetrics>,
    peers: Arc<Gauge>,
    /// Taken to declare and to tell, never to count.
    kinds: Mutex<Vec<Arc<KindMetrics>>>,
    /// The same.
    webhooks: Mutex<Vec<Arc<WebhookMetrics>>>,
}

/// What is counted of one kind.
#[derive(Debug)]
pub(crate) struct KindMetrics {
    name: String,
    events: [Counter; Event::ALL.len()],
    restarts: [Counter; Restart::ALL.len()],
    /// Taken to declare and to tell, never to count.
    handlers: Mutex<Vec<Arc<HandlerMetrics>>>,
}

/// What is counted of one handler.
#[derive(Debug)]
pub(crate) struct HandlerMetrics {
    id: String,
    form: Form,
    durations: Histogram,
    outcomes: [Counter; Outcome::ALL.len()],
    retries: Counter,
    running: Gauge,
}

/// What is counted of one webhook.
#[derive(Debug)]
pub(crate) struct WebhookMetrics {
    kind: String,
    id: String,
    durations: Histogram,
    verdicts: [Counter; Verdict::ALL.len()],
}

/// How many objects wait.
#[derive(Debug)]
pub(crate) struct QueueMetrics {
    begun: Instant,
    depth: Gauge,
    /// When the one that waits longest came, in milliseconds; `NOBODY` if none waits.
    oldest: AtomicU64,
    working: Gauge,
}

/// What became of Kubernetes events.
#[derive(Debug, Default)]
pub(crate) struct PostingMetrics {
    pub(crate) posted: Counter,
    pub(crate) failed: Counter,
    pub(crate) dropped: Counter,
}

/// One attempt of a handler that is being measured.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    handler: &'a HandlerMetrics,
    begun: Instant,
}

/// The part of a number that is a sum, held by one of those who contribute.
#[derive(Debug)]
pub(crate) struct Share {
    sum: Arc<Gauge>,
    held: i64,
}

/// What is known of the operator as a whole when metrics are told.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// Why it pauses, if it does.
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

labels! {
    /// What a stream said about an object.
    Event {
        Listed = "listed",
        Added = "added",
        Modified = "modified",
        Deleted = "deleted",
    }
}

labels! {
    /// Why a watch was opened anew.
    Restart {
        /// The server closed it, as it does from time to time.
        Closed = "closed",
        /// Nothing came for too long.
        Silent = "silent",
        /// The server no longer knows the position.
        Expired = "expired",
        /// Something went wrong.
        Failed = "failed",
    }
}

labels! {
    /// How an attempt of a handler ended.
    Outcome {
        Succeeded = "succeeded",
        /// Sub-handlers are not done.
        Waiting = "waiting",
        Temporary = "temporary",
        Permanent = "permanent",
        Arbitrary = "error",
        Panicked = "panicked",
        TimedOut = "timed-out",
        Interrupted = "interrupted",
        Undecodable = "undecodable",
        /// It was not made, as there had been enough.
        Exhausted = "exhausted",
    }
}

labels! {
    /// What a webhook said.
    Verdict {
        Allowed = "allowed",
        Denied = "denied",
        Failed = "failed",
    }
}

/// What kind of handler it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Event,
    Change,
    Daemon,
    Timer,
    Index,
}

/// Nobody waits in the queue.
const NOBODY: u64 = u64::MAX;

/// Every reason for a pause; [`Pause::reason`](crate::activity::Pause::reason) is one of them.
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
            shared: Arc::new(Shared {
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

    /// A place for what is counted of a kind; the same for the same kind.
    pub(crate) fn kind(&self, kind: &str, group: &str) -> Arc<KindMetrics> {
        let name = full_name(kind, group);
        let mut kinds = locked(&self.shared.kinds);
        if let Some(known) = kinds.iter().find(|known| known.name == name) {
            return Arc::clone(known);
        }
        let made = Arc::new(KindMetrics::new(name));
        kinds.push(Arc::clone(&made));
        made
    }

    /// A place for what is counted of a webhook.
    pub(crate) fn webhook(&self, kind: &str, group: &str, id: &str) -> Arc<WebhookMetrics> {
        let made = Arc::new(WebhookMetrics {
            kind: full_name(kind, group),
            id: id.to_owned(),
            durations: Histogram::default(),
            verdicts: Default::default(),
        });
        locked(&self.shared.webhooks).push(Arc::clone(&made));
        made
    }

    pub(crate) fn queue(&self) -> Arc<QueueMetrics> {
        Arc::clone(&self.shared.queue)
    }

    pub(crate) fn posting(&self) -> Arc<PostingMetrics> {
        Arc::clone(&self.shared.posting)
    }

    /// A share of the number of peers, for one peering object.
    pub(crate) fn peers(&self) -> Share {
        Share {
            sum: Arc::clone(&self.shared.peers),
            held: 0,
        }
    }

    /// Everything in Prometheus' text format.
    pub(crate) fn tell(&self, standing: &Standing) -> String {
        let mut page = Page::default();
        let build = [
            ("operator", self.shared.operator),
            ("version", env!("CARGO_PKG_VERSION")),
        ];
        page.family(
            "kopf_build_info",
            Type::Gauge,
            "Always 1; the labels tell what runs.",
        )
        .sample(&build, 1);
        self.tell_standing(&mut page, standing);
        self.shared.queue.tell(&mut page);
        let kinds = locked(&self.shared.kinds).clone();
        tell_kinds(&mut page, &kinds);
        tell_handlers(&mut page, &kinds);
        self.shared.api.tell(&mut page);
        self.shared.posting.tell(&mut page);
        tell_webhooks(&mut page, &locked(&self.shared.webhooks));
        page.into_text()
    }

    fn tell_standing(&self, page: &mut Page, standing: &Standing) {
        page.family(
            "kopf_ready",
            Type::Gauge,
            "Whether the readiness probe succeeds.",
        )
        .sample(&[], standing.ready.into());
        let mut paused = page.family(
            "kopf_paused",
            Type::Gauge,
            "Whether the operator pauses for this reason.",
        );
        for reason in PAUSES {
            let holds = standing.pause == Some(reason);
            paused.sample(&[("reason", reason)], holds.into());
        }
        page.family(
            "kopf_leader",
            Type::Gauge,
            "Whether this replica is the leader; always 1 without leader election.",
        )
        .sample(&[], standing.leads.into());
        page.family(
            "kopf_peers",
            Type::Gauge,
            "Other operators that are alive in the peering.",
        )
        .sample(&[], self.shared.peers.get());
        let mut keys = page.family("kopf_index_keys", Type::Gauge, "Keys of an index.");
        for (index, count) in &standing.indices {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            keys.sample(&[("index", index)], count);
        }
    }
}

// === impl KindMetrics ===

impl KindMetrics {
    fn new(name: String) -> Self {
        Self {
            name,
            events: Default::default(),
            restarts: Default::default(),
            handlers: Mutex::default(),
        }
    }

    /// A place for what is counted of nothing in particular.
    pub(crate) fn unobserved() -> Arc<Self> {
        Arc::new(Self::new(String::new()))
    }

    /// A place for what is counted of a handler; the same for the same id and form.
    pub(crate) fn handler(&self, id: &str, form: Form) -> Arc<HandlerMetrics> {
        let mut handlers = locked(&self.handlers);
        let known = handlers
            .iter()
            .find(|known| known.id == id && known.form == form);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let made = Arc::new(HandlerMetrics {
            id: id.to_owned(),
            form,
            durations: Histogram::default(),
            outcomes: Default::default(),
            retries: Counter::default(),
            running: Gauge::default(),
        });
        handlers.push(Arc::clone(&made));
        made
    }

    pub(crate) fn saw(&self, event: Event) {
        self.events[event as usize].add();
    }

    pub(crate) fn restarted(&self, restart: Restart) {
        self.restarts[restart as usize].add();
    }
}

// === impl HandlerMetrics ===

impl HandlerMetrics {
    /// An attempt begins, after so many that failed.
    pub(crate) fn begin(&self, retry: u32) -> Measured<'_> {
        if retry > 0 {
            self.retries.add();
        }
        Measured {
            handler: self,
            begun: Instant::now(),
        }
    }

    /// An attempt was not made.
    pub(crate) fn exhausted(&self) {
        self.outcomes[Outcome::Exhausted as usize].add();
    }

    /// A daemon or timer came to an object.
    pub(crate) fn came(&self) {
        self.running.add(1);
    }

    /// A daemon or timer has left an object.
    pub(crate) fn left(&self) {
        self.running.add(-1);
    }
}

// === impl Measured ===

impl Measured<'_> {
    /// The attempt is over.
    pub(crate) fn end(self, outcome: Outcome) {
        self.handler.durations.observe(self.begun.elapsed());
        self.handler.outcomes[outcome as usize].add();
    }
}

// === impl WebhookMetrics ===

impl WebhookMetrics {
    pub(crate) fn reviewed(&self, verdict: Verdict, time: Duration) {
        self.durations.observe(time);
        self.verdicts[verdict as usize].add();
    }
}

// === impl QueueMetrics ===

impl Default for QueueMetrics {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            depth: Gauge::default(),
            oldest: AtomicU64::new(NOBODY),
            working: Gauge::default(),
        }
    }
}

impl QueueMetrics {
    /// The time, to remember when somebody came.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(NOBODY)
    }

    /// So many wait, and the first of them since then.
    pub(crate) fn waiting(&self, count: usize, since: Option<u64>) {
        self.depth.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.oldest
            .store(since.unwrap_or(NOBODY), Ordering::Relaxed);
    }

    /// So many are worked on.
    pub(crate) fn working(&self, count: usize) {
        self.working.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn tell(&self, page: &mut Page) {
        page.family(
            "kopf_queue_depth",
            Type::Gauge,
            "Objects that wait for a worker.",
        )
        .sample(&[], self.depth.get());
        let oldest = self.oldest.load(Ordering::Relaxed);
        let age = match oldest {
            NOBODY => 0,
            oldest => self.now().saturating_sub(oldest),
        };
        page.family(
            "kopf_queue_oldest_seconds",
            Type::Gauge,
            "For how long the first of them has been waiting.",
        )
        .seconds(&[], Duration::from_millis(age));
        page.family(
            "kopf_workers",
            Type::Gauge,
            "Objects that are being handled.",
        )
        .sample(&[], self.working.get());
    }
}

// === impl PostingMetrics ===

impl PostingMetrics {
    fn tell(&self, page: &mut Page) {
        let mut posts = page.family(
            "kopf_kubernetes_events_total",
            Type::Counter,
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

// === impl Share ===

impl Share {
    pub(crate) fn set(&mut self, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.sum.add(count - self.held);
        self.held = count;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

fn tell_kinds(page: &mut Page, kinds: &[Arc<KindMetrics>]) {
    let mut events = page.family(
        "kopf_events_total",
        Type::Counter,
        "Events of objects that lists and watches brought.",
    );
    for kind in kinds {
        for event in Event::ALL {
            let labels = [("kind", &*kind.name), ("type", event.text())];
            events.count(&labels, &kind.events[event as usize]);
        }
    }
    let mut restarts = page.family(
        "kopf_watch_restarts_total",
        Type::Counter,
        "Watches that ended and were begun anew.",
    );
    for kind in kinds {
        for restart in Restart::ALL {
            let labels = [("kind", &*kind.name), ("reason", restart.text())];
            restarts.count(&labels, &kind.restarts[restart as usize]);
        }
    }
}

fn tell_handlers(page: &mut Page, kinds: &[Arc<KindMetrics>]) {
    let handlers: Vec<(&str, Arc<HandlerMetrics>)> = kinds
        .iter()
        .flat_map(|kind| {
            let handlers = locked(&kind.handlers).clone();
            handlers.into_iter().map(|handler| (&*kind.name, handler))
        })
        .collect();
    let mut durations = page.family(
        "kopf_handler_duration_seconds",
        Type::Histogram,
        "How long attempts of handlers took.",
    );
    for (kind, handler) in &handlers {
        let labels = [("kind", *kind), ("handler", &*handler.id)];
        durations.histogram(&labels, &handler.durations);
    }
    let mut outcomes = page.family(
        "kopf_handler_outcomes_total",
        Type::Counter,
        "Attempts of handlers by how they ended.",
    );
    for (kind, handler) in &handlers {
        for outcome in Outcome::ALL {
            let labels = [
                ("kind", *kind),
                ("handler", &*handler.id),
                ("outcome", outcome.text()),
            ];
            outcomes.count(&labels, &handler.outcomes[outcome as usize]);
        }
    }
    let mut retries = page.family(
        "kopf_handler_retries_total",
        Type::Counter,
        "Attempts of handlers that were not the first.",
    );
    for (kind, handler) in &handlers {
        let labels = [("kind", *kind), ("handler", &*handler.id)];
        retries.count(&labels, &handler.retries);
    }
    for (name, form, help) in [
        (
            "kopf_daemons",
            Form::Daemon,
            "Daemons that accompany objects.",
        ),
        ("kopf_timers", Form::Timer, "Timers that accompany objects."),
    ] {
        let mut running = page.family(name, Type::Gauge, help);
        let of_form = handlers.iter().filter(|(_, it)| it.form == form);
        for (kind, handler) in of_form {
            let labels = [("kind", *kind), ("handler", &*handler.id)];
            running.sample(&labels, handler.running.get());
        }
    }
}

fn tell_webhooks(page: &mut Page, webhooks: &[Arc<WebhookMetrics>]) {
    let mut durations = page.family(
        "kopf_webhook_duration_seconds",
        Type::Histogram,
        "How long reviews took.",
    );
    for webhook in webhooks {
        let labels = [("kind", &*webhook.kind), ("webhook", &*webhook.id)];
        durations.histogram(&labels, &webhook.durations);
    }
    let mut reviews = page.family(
        "kopf_webhook_reviews_total",
        Type::Counter,
        "Reviews by what the webhook said.",
    );
    for webhook in webhooks {
        for verdict in Verdict::ALL {
            let labels = [
                ("kind", &*webhook.kind),
                ("webhook", &*webhook.id),
                ("verdict", verdict.text()),
            ];
            reviews.count(&labels, &webhook.verdicts[verdict as usize]);
        }
    }
}

/// A kind as `kubectl` names it.
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

    fn told(metrics: &Metrics) -> String {
        metrics.tell(&Standing {
            pause: Some("peers"),
            leads: true,
            ready: false,
            indices: vec![("by_size", 3)],
        })
    }

    #[test]
    fn what_was_counted_is_told() {
        let metrics = Metrics::new("op", Arc::default());
        let kind = metrics.kind("Widget", "test.dev");
        kind.saw(Event::Added);
        kind.saw(Event::Added);
        let handler = kind.handler("create_fn", Form::Change);
        handler.begin(0).end(Outcome::Temporary);
        handler.begin(1).end(Outcome::Succeeded);
        let queue = metrics.queue();
        queue.waiting(3, Some(queue.now()));
        let text = told(&metrics);
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
        let again = metrics.kind("Pod", "").handler("fn", Form::Change);
        assert!(Arc::ptr_eq(&kind.handler("fn", Form::Change), &again));
    }

    #[test]
    fn shares_make_a_sum_and_go_with_their_holder() {
        let metrics = Metrics::new("op", Arc::default());
        let (mut one, mut two) = (metrics.peers(), metrics.peers());
        one.set(2);
        two.set(3);
        one.set(1);
        assert!(told(&metrics).contains("kopf_peers 4\n"));
        drop(two);
        assert!(told(&metrics).contains("kopf_peers 1\n"));
    }
}
