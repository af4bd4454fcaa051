//! Posts log lines of handlers as Kubernetes events on their object.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::object_ref::ObjectRef;
use super::posting::{EventPoster, EventSeverity};
use crate::settings::PostingLevel;

/// The reason that Kopf gives to events made of log lines.
const REASON: &str = "Logging";

tokio::task_local! {
    static LOG_POSTER: LogPoster;
}

/// Posts the log lines of a task as Kubernetes events on one object.
#[derive(Debug, Clone)]
pub(crate) struct LogPoster {
    poster: EventPoster,
    subject: ObjectRef,
}

/// A tracing layer that posts log lines of handlers as Kubernetes events, if the settings say so.
///
/// [`Operator::main`](crate::Operator::main) installs it. Add it to a tracing subscriber of your own:
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let subscriber = tracing_subscriber::registry().with(kopf_runtime::EventLayer);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct EventLayer;

/// The text of a log line.
#[derive(Default)]
struct LoggedText {
    message: String,
    fields: String,
}

// === impl LogPoster ===

impl LogPoster {
    /// The poster for an object, if the settings say that log lines are posted.
    pub(crate) fn of(poster: Option<&EventPoster>, subject: &ObjectRef) -> Option<Self> {
        let poster = poster.filter(|poster| poster.settings().loggers)?;
        Some(Self {
            poster: poster.clone(),
            subject: subject.clone(),
        })
    }

    /// The poster of the current task.
    pub(crate) fn current() -> Option<Self> {
        LOG_POSTER.try_with(Self::clone).ok()
    }

    /// Runs a future with this poster, or without one.
    pub(crate) async fn scope<T>(log_poster: Option<Self>, work: impl Future<Output = T>) -> T {
        match log_poster {
            Some(log_poster) => LOG_POSTER.scope(log_poster, work).await,
            None => work.await,
        }
    }

    /// Runs a closure with this poster, or without one.
    pub(crate) fn scope_sync<T>(log_poster: Option<Self>, work: impl FnOnce() -> T) -> T {
        match log_poster {
            Some(log_poster) => LOG_POSTER.sync_scope(log_poster, work),
            None => work(),
        }
    }
}

// === impl EventLayer ===

impl<S: Subscriber> Layer<S> for EventLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // The runtime posts its own events explicitly.
        if event.metadata().target().starts_with("kopf_runtime") {
            return;
        }
        // Tasks without a poster, and tasks that are ending, post nothing.
        let _ = LOG_POSTER.try_with(|log_poster| {
            let (level, severity) = match *event.metadata().level() {
                Level::ERROR => (PostingLevel::Error, EventSeverity::Error),
                Level::WARN => (PostingLevel::Warning, EventSeverity::Warning),
                Level::INFO => (PostingLevel::Info, EventSeverity::Normal),
                _ => (PostingLevel::Debug, "Debug".into()),
            };
            if log_poster.poster.wants(level) {
                let mut line = LoggedText::default();
                event.record(&mut line);
                let text = line.message + &line.fields;
                log_poster
                    .poster
                    .post(&log_poster.subject, &severity, REASON, text);
            }
        });
    }
}

// === impl LoggedText ===

impl Visit for LoggedText {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
        // Writing to a String does not fail.
        let _ = written;
    }
}
