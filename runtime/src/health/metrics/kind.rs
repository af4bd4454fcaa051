//! What is counted of a kind: the events of its streams, and the attempts of its handlers.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::instrument::{Counter, Gauge, Histogram};
use super::text_format::{MetricType, MetricsText};
use super::{labels, locked};

/// What is counted of one kind.
#[derive(Debug)]
pub(crate) struct KindMetrics {
    name: String,
    events: [Counter; EventLabel::ALL.len()],
    restarts: [Counter; WatchRestart::ALL.len()],
    /// Taken to declare and to tell, never to count.
    handlers: Mutex<Vec<Arc<HandlerMetrics>>>,
}

/// What is counted of one handler.
#[derive(Debug)]
pub(crate) struct HandlerMetrics {
    id: String,
    handler_type: HandlerType,
    durations: Histogram,
    outcomes: [Counter; AttemptOutcome::ALL.len()],
    retries: Counter,
    running: Gauge,
}

/// One attempt of a handler that is being measured.
#[derive(Debug)]
pub(crate) struct MeasuredAttempt<'a> {
    handler: &'a HandlerMetrics,
    begun: Instant,
}

labels! {
    /// What a stream said about an object.
    EventLabel {
        Listed = "listed",
        Added = "added",
        Modified = "modified",
        Deleted = "deleted",
    }
}

labels! {
    /// Why a watch was opened anew.
    WatchRestart {
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
        /// It was not made, as there had been enough.
        Exhausted = "exhausted",
    }
}

/// What kind of handler it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerType {
    Event,
    Change,
    Daemon,
    Timer,
    Index,
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

    /// A place for what is counted of nothing in particular.
    pub(crate) fn unobserved() -> Arc<Self> {
        Arc::new(Self::new(String::new()))
    }

    /// A place for what is counted of a handler; the same for the same id and handler_type.
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
}

// === impl HandlerMetrics ===

impl HandlerMetrics {
    /// An attempt begins, after so many that failed.
    pub(crate) fn begin(&self, retry: u32) -> MeasuredAttempt<'_> {
        if retry > 0 {
            self.retries.add();
        }
        MeasuredAttempt {
            handler: self,
            begun: Instant::now(),
        }
    }

    /// An attempt was not made.
    pub(crate) fn exhausted(&self) {
        self.outcomes[AttemptOutcome::Exhausted as usize].add();
    }

    /// A daemon or timer came to an object.
    pub(crate) fn started(&self) {
        self.running.add(1);
    }

    /// A daemon or timer has left an object.
    pub(crate) fn stopped(&self) {
        self.running.add(-1);
    }
}

// === impl MeasuredAttempt ===

impl MeasuredAttempt<'_> {
    /// The attempt is over.
    pub(crate) fn end(self, outcome: AttemptOutcome) {
        self.handler.durations.observe(self.begun.elapsed());
        self.handler.outcomes[outcome as usize].add();
    }
}

/// Tells about all kinds, and about their handlers.
pub(super) fn tell(text: &mut MetricsText, kinds: &[Arc<KindMetrics>]) {
    tell_streams(text, kinds);
    tell_handlers(text, kinds);
}

fn tell_streams(text: &mut MetricsText, kinds: &[Arc<KindMetrics>]) {
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

fn tell_handlers(text: &mut MetricsText, kinds: &[Arc<KindMetrics>]) {
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
        let of_form = handlers
            .iter()
            .filter(|(_, it)| it.handler_type == handler_type);
        for (kind, handler) in of_form {
            let labels = [("kind", *kind), ("handler", &*handler.id)];
            running.sample(&labels, handler.running.get());
        }
    }
}
