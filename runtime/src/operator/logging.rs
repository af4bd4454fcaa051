//! Installs the log of the process: its filter, its format, and the export of traces.

mod line;
mod options;
mod page_lines;
mod span_fields;

use std::io::{IsTerminal as _, stderr};

use tracing::level_filters::LevelFilter;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Identity, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, Registry};

use self::line::{DiscardFields, LineFormat};
pub use self::options::{LogFormat, LogVerbosity};
use self::page_lines::PageLinesLayer;
use self::span_fields::SpanFieldsLayer;
use crate::events::log_layer::EventLayer;
use crate::health::metrics::api::REQUEST_LOG;

/// Libraries below the operator, whose debug messages help their own developers only. A crate of the
/// user whose name begins like one of these would be quiet, too.
const LIBRARIES: [&str; 12] = [
    "h2::",
    "hyper::",
    "hyper_rustls::",
    "hyper_util::",
    "kube_client::",
    "kube_core::",
    "mio::",
    "opentelemetry",
    "reqwest::",
    "rustls::",
    "tokio_util::",
    "tower::",
];

/// Sets up the log of a program: what [`Operator::main`](super::Operator::main) does by its command
/// line, for programs that start operators themselves.
///
/// ```
/// use kopf_runtime::{LogFormat, LogSetup, LogVerbosity};
///
/// let log = LogSetup::default()
///     .verbosity(LogVerbosity::Verbose)
///     .format(LogFormat::Json);
/// log.install().expect("there is no other log");
/// ```
///
/// Lines go to the standard error output, each with the object that it is about. If the environment
/// variable `RUST_LOG` is set, it decides about the amount of lines instead. Log lines of handlers
/// become Kubernetes events if the settings say so.
#[derive(Debug, Clone, Default)]
#[must_use = "a log is set up when it is installed"]
pub struct LogSetup {
    verbosity: LogVerbosity,
    format: LogFormat,
    prefix: Option<bool>,
    reference_key: Option<String>,
}

/// The program has a log already, which stays as it is.
#[derive(Debug, thiserror::Error)]
#[error("the program has a log already")]
pub struct LogAlreadySetUp(#[source] TryInitError);

/// The export of traces, which ends when this is dropped.
#[cfg(feature = "otel")]
pub(super) type Traces = Option<super::telemetry::Telemetry>;

/// This build exports no traces.
#[cfg(not(feature = "otel"))]
pub(super) struct Traces;

/// Installs the log of the process, unless the embedding program already has one.
pub(super) fn init(setup: &LogSetup) {
    install_or_say_why(setup, None::<Identity>);
}

/// Does the same, and exports traces if the environment variables ask for it.
#[cfg(feature = "otel")]
pub(super) fn init_with_traces(setup: &LogSetup, operator: &'static str) -> Traces {
    let found = super::telemetry::Telemetry::from_environment(operator);
    let (traces, failure) = match found {
        Ok(traces) => (traces, None),
        Err(error) => (None, Some(error)),
    };
    install_or_say_why(
        setup,
        traces.as_ref().map(super::telemetry::Telemetry::layer),
    );
    if let Some(failure) = failure {
        tracing::warn!("traces are not exported: {}", super::error::chain(&failure));
    }
    traces
}

/// Does the same: this build exports no traces.
#[cfg(not(feature = "otel"))]
pub(super) fn init_with_traces(setup: &LogSetup, _operator: &'static str) -> Traces {
    init(setup);
    Traces
}

fn install_or_say_why(setup: &LogSetup, traces: Option<impl Layer<Registry> + Send + Sync>) {
    if let Err(LogAlreadySetUp(error)) = setup.install_with(traces) {
        tracing::debug!("the log subscriber stays as it was: {error}");
    }
}

// === impl LogSetup ===

impl LogSetup {
    /// Sets the amount of lines.
    pub fn verbosity(mut self, verbosity: LogVerbosity) -> Self {
        self.verbosity = verbosity;
        self
    }

    /// Sets the format of lines.
    pub fn format(mut self, format: LogFormat) -> Self {
        self.format = format;
        self
    }

    /// Sets whether each line about an object begins with `[namespace/name]`; this is the default
    /// except for JSON.
    pub fn prefix(mut self, prefix: bool) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// Sets the key of the object in JSON lines, which is `object` by default.
    pub fn reference_key(mut self, key: impl Into<String>) -> Self {
        self.reference_key = Some(key.into());
        self
    }

    /// Installs the log for the whole program.
    ///
    /// # Errors
    /// If the program has a `tracing` subscriber or a `log` logger already.
    pub fn install(&self) -> Result<(), LogAlreadySetUp> {
        self.install_with(None::<Identity>)
    }

    fn install_with(
        &self,
        traces: Option<impl Layer<Registry> + Send + Sync>,
    ) -> Result<(), LogAlreadySetUp> {
        let key = self.reference_key.as_deref().unwrap_or("object");
        let lines = fmt::layer()
            .fmt_fields(DiscardFields)
            .event_format(LineFormat {
                format: self.format,
                prefix: self.prefix.unwrap_or(self.format != LogFormat::Json),
                reference_key: key.to_owned(),
            })
            .with_ansi(stderr().is_terminal())
            // They would go to stderr, which is the writer that failed.
            .log_internal_errors(false)
            .with_writer(stderr);
        tracing_subscriber::registry()
            .with(traces)
            .with(filter(self.verbosity))
            .with(SpanFieldsLayer)
            .with(EventLayer)
            .with(PageLinesLayer)
            .with(lines)
            .try_init()
            .map_err(LogAlreadySetUp)
    }
}

/// The filter of `RUST_LOG`, or else that of the command line.
///
/// `RUST_LOG` may select by spans and their fields, which costs time with every span.
fn filter<S: Subscriber + for<'a> LookupSpan<'a>>(
    verbosity: LogVerbosity,
) -> Box<dyn Layer<S> + Send + Sync> {
    match EnvFilter::try_from_default_env() {
        Ok(chosen) => chosen.boxed(),
        Err(_) => targets(verbosity).boxed(),
    }
}

fn targets(verbosity: LogVerbosity) -> Targets {
    let everything = Targets::new();
    let details = || {
        Targets::new()
            .with_default(Level::DEBUG)
            .with_targets(LIBRARIES.map(|library| (library, Level::INFO)))
    };
    match verbosity {
        LogVerbosity::Quiet => everything.with_default(Level::WARN),
        LogVerbosity::Normal => everything.with_default(Level::INFO),
        LogVerbosity::Verbose => details().with_target(REQUEST_LOG, LevelFilter::OFF),
        LogVerbosity::Debug => details(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_logged_for_debugging_and_internals_of_libraries_never() {
        let enabled = |verbosity, target| targets(verbosity).would_enable(target, &Level::DEBUG);
        for verbosity in [LogVerbosity::Verbose, LogVerbosity::Debug] {
            assert!(enabled(verbosity, "my_operator::handlers"));
            assert!(enabled(verbosity, "kube_operator_of_mine"));
            assert!(enabled(verbosity, "kopf_runtime::process"));
            for library in [
                "hyper_util::client",
                "rustls::client::hs",
                "kube_client::client",
                "tower::buffer",
            ] {
                assert!(!enabled(verbosity, library), "{library}");
                assert!(targets(verbosity).would_enable(library, &Level::WARN));
            }
        }
        assert!(enabled(LogVerbosity::Debug, REQUEST_LOG));
        assert!(!enabled(LogVerbosity::Verbose, REQUEST_LOG));
        assert!(!enabled(LogVerbosity::Normal, "my_operator::handlers"));
        assert!(!targets(LogVerbosity::Quiet).would_enable("my_operator", &Level::INFO));
    }
}
