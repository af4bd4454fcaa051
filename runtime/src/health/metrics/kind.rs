//! The metrics of a kind: its watch events, the restarts of its watches, and its handlers.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::instrument::{Counter, Gauge, Histogram};
use super::summary::{HandlerSummary, KindSummary};
use super::text_format::{MetricType, MetricsText};
use super::{labels, locked};

/// The metrics of one kind.
#[derive(Debug)]
pub(crate) struct KindMetrics {
    name: String,
    events: [Counter; EventLabel::ALL.len()],
    restarts: [Counter; WatchRestart::ALL.len()],
    /// Locked to declare and to encode, never to count.
    handlers: Mutex<Vec<Arc<HandlerMetrics>>>,
}

/// The metrics of one handler.
#[derive(Debug)]
pub(crate) struct HandlerMetrics {
    id: String,
    handler_type: HandlerType,
    durations: Histogram,
    outcomes: [Counter; AttemptOutcome::ALL.len()],
    retries: Counter,
    running: Gauge,
}

/// An attempt of a handler that has begun.
#[derive(Debug)]
pub(crate) struct MeasuredAttempt<'a> {
    handler: &'a HandlerMetrics,
    begun: Instant,
}

labels! {
    /// The type of a watch event, or `listed`.
    EventLabel {
        Listed = "listed",
        Added = "added",
        Modified = "modified",
        Deleted = "deleted",
    }
}

labels! {
    /// The reason for which a watch was restarted.
    WatchRestart {
        /// The API server closed it, as it does from time to time.
        Closed = "closed",
        /// No event or bookmark arrived for too long.
        Silent = "silent",
        /// The API server no longer has the resource version.
        Expired = "expired",
        /// A request or the stream failed.
        Failed = "failed",
    }
}

labels! {
    /// The end of an attempt of a handler.
    AttemptOutcome {
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
        /// The attempt was not made: the handler has reached its limit of retries or time.
        Exhausted = "exhausted",
    }
}

/// The type of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerType {
    Event,
    Change,
    Daemon,
    Timer,
    Index,
    Reconcile,
    Child,
}

// === impl HandlerType ===

impl HandlerType {
    fn text(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Change => "change",
            Self::Daemon => "daemon",
            Self::Timer => "timer",
            Self::Index => "index",
            Self::Reconcile => "reconcile",
            Self::Child => "child",
        }
    }
}

// === impl KindMetrics ===

impl KindMetrics {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            events: Default::default(),
            restarts: Default::default(),
            handlers: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Metrics that are never encoded.
    pub(crate) fn unobserved() -> Arc<Self> {
        Arc::new(Self::new(String::new()))
    }

    /// The metrics of a handler; the same for the same id and type.
    pub(crate) fn handler(&self, id: &str, handler_type: HandlerType) -> Arc<HandlerMetrics> {
        let mut handlers = locked(&self.handlers);
        let known = handlers
            .iter()
            .find(|known| known.id == id && known.handler_type == handler_type);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let made = Arc::new(HandlerMetrics {
            id: id.to_owned(),
            handler_type,
            durations: Histogram::default(),
            outcomes: Default::default(),
            retries: Counter::default(),
            running: Gauge::default(),
        });
        handlers.push(Arc::clone(&made));
        made
    }

    pub(crate) fn count_event(&self, event: EventLabel) {
        self.events[event as usize].add();
    }

    pub(crate) fn count_restart(&self, restart: WatchRestart) {
        self.restarts[restart as usize].add();
    }

    pub(super) fn summary(&self) -> KindSummary {
        let events = EventLabel::ALL.map(|it| (it.text(), self.events[it as usize].get()));
        let restarts = WatchRestart::ALL.map(|it| (it.text(), self.restarts[it as usize].get()));
        let handlers = locked(&self.handlers).clone();
        KindSummary {
            kind: self.name.clone(),
            events: events.into(),
            restarts: restarts.into(),
            handlers: handlers.iter().map(|handler| handler.summary()).collect(),
        }
    }
}

// === impl HandlerMetrics ===

impl HandlerMetrics {
    /// Counts the start of an attempt, after so many others.
    pub(crate) fn begin(&self, retry: u32) -> MeasuredAttempt<'_> {
        if retry > 0 {
            self.retries.add();
        }
        MeasuredAttempt {
            handler: self,
            begun: Instant::now(),
        }
    }

    /// Counts an attempt that was not made.
    pub(crate) fn exhausted(&self) {
        self.outcomes[AttemptOutcome::Exhausted as usize].add();
    }

    /// Counts a daemon or timer that was started for an object.
    pub(crate) fn started(&self) {
        self.running.add(1);
    }

    /// Counts a daemon or timer of an object that has stopped.
    pub(crate) fn stopped(&self) {
        self.running.add(-1);
    }

    fn summary(&self) -> HandlerSummary {
        let outcomes = AttemptOutcome::ALL.into_iter();
        let outcomes = outcomes.map(|it| (it.text(), self.outcomes[it as usize].get()));
        HandlerSummary {
            id: self.id.clone(),
            handler_type: self.handler_type.text(),
            outcomes: outcomes.filter(|(_, count)| *count > 0).collect(),
            running: self.running.get(),
        }
    }
}

// === impl MeasuredAttempt ===

impl MeasuredAttempt<'_> {
    /// Counts the end of the attempt.
    pub(crate) fn end(self, outcome: AttemptOutcome) {
        self.handler.durations.observe(self.begun.elapsed());
        self.handler.outcomes[outcome as usize].add();
    }
}

/// Encodes the metrics of all kinds and their handlers.
pub(super) fn encode(text: &mut MetricsText, kinds: &[Arc<KindMetrics>]) {
    encode_streams(text, kinds);
    encode_handlers(text, kinds);
}

fn encode_streams(text: &mut MetricsText, kinds: &[Arc<KindMetrics>]) {
    let mut events = text.family(
        "kopf_events_total",
        MetricType::Counter,
        "Events of objects that lists and watches brought.",
    );
    for kind in kinds {
        for event in EventLabel::ALL {
            let labels = [("kind", &*kind.name), ("type", event.text())];
            events.count(&labels, &kind.events[event as usize]);
        }
    }
    let mut restarts = text.family(
        "kopf_watch_restarts_total",
        MetricType::Counter,
        "Watches that ended and were begun anew.",
    );
    for kind in kinds {
        for restart in WatchRestart::ALL {
            let labels = [("kind", &*kind.name), ("reason", restart.text())];
            restarts.count(&labels, &kind.restarts[restart as usize]);
        }
    }
}

fn encode_handlers(text: &mut MetricsText, kinds: &[Arc<KindMetrics>]) {
    let handlers: Vec<(&str, Arc<HandlerMetrics>)> = kinds
        .iter()
        .flat_map(|kind| {
            let handlers = locked(&kind.handlers).clone();
            handlers.into_iter().map(|handler| (&*kind.name, handler))
        })
        .collect();
    let mut durations = text.family(
        "kopf_handler_duration_seconds",
        MetricType::Histogram,
        "How long attempts of handlers took.",
    );
    for (kind, handler) in &handlers {
        let labels = [("kind", *kind), ("handler", &*handler.id)];
        durations.histogram(&labels, &handler.durations);
    }
    let mut outcomes = text.family(
        "kopf_handler_outcomes_total",
        MetricType::Counter,
        "Attempts of handlers by how they ended.",
    );
    for (kind, handler) in &handlers {
        for outcome in AttemptOutcome::ALL {
            let labels = [
                ("kind", *kind),
                ("handler", &*handler.id),
                ("outcome", outcome.text()),
            ];
            outcomes.count(&labels, &handler.outcomes[outcome as usize]);
        }
    }
    let mut retries = text.family(
        "kopf_handler_retries_total",
        MetricType::Counter,
        "Attempts of handlers that were not the first.",
    );
    for (kind, handler) in &handlers {
        let labels = [("kind", *kind), ("handler", &*handler.id)];
        retries.count(&labels, &handler.retries);
    }
    for (name, handler_type, help) in [
        (
            "kopf_daemons",
            HandlerType::Daemon,
            "Daemons that accompany objects.",
        ),
        (
            "kopf_timers",
            HandlerType::Timer,
            "Timers that accompany objects.",
        ),
    ] {
        let mut running = text.family(name, MetricType::Gauge, help);
        let of_type = handlers
            .iter()
            .filter(|(_, it)| it.handler_type == handler_type);
        for (kind, handler) in of_type {
            let labels = [("kind", *kind), ("handler", &*handler.id)];
            running.sample(&labels, handler.running.get());
        }
    }
}
