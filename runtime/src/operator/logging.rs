//! Installs the log of the process: its filter, its format, and the export of traces.

mod line;
mod span_fields;

use std::io::{IsTerminal as _, stderr};

use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Identity, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use self::line::{DiscardFields, LineFormat};
use self::span_fields::SpanFieldsLayer;
use super::args::{LoggingArgs, Verbosity};
use crate::events::log_layer::EventLayer;

/// Libraries that log much at the debug level; `--verbose` leaves that out.
const NOISY_LIBRARIES: [&str; 5] = ["hyper_util", "hyper", "rustls", "tower", "kube"];

/// The export of traces, which ends when this is dropped.
#[cfg(feature = "otel")]
pub(super) type Traces = Option<super::telemetry::Telemetry>;

/// This build exports no traces.
#[cfg(not(feature = "otel"))]
pub(super) struct Traces;

/// Installs the subscriber of the process, unless the embedding program already has one.
pub(super) fn init(args: &LoggingArgs) {
    install(args, None::<Identity>);
}

/// Does the same, and exports traces if the environment variables ask for it.
#[cfg(feature = "otel")]
pub(super) fn init_with_traces(args: &LoggingArgs, operator: &'static str) -> Traces {
    let found = super::telemetry::Telemetry::from_environment(operator);
    let (traces, failure) = match found {
        Ok(traces) => (traces, None),
        Err(error) => (None, Some(error)),
    };
    install(
        args,
        traces.as_ref().map(super::telemetry::Telemetry::layer),
    );
    if let Some(failure) = failure {
        tracing::warn!("traces are not exported: {}", super::error::chain(&failure));
    }
    traces
}

/// Does the same: this build exports no traces.
#[cfg(not(feature = "otel"))]
pub(super) fn init_with_traces(args: &LoggingArgs, _operator: &'static str) -> Traces {
    init(args);
    Traces
}

fn install(args: &LoggingArgs, traces: Option<impl Layer<Registry> + Send + Sync>) {
    let lines = fmt::layer()
        .fmt_fields(DiscardFields)
        .event_format(LineFormat {
            format: args.log_format,
            prefix: args.log_prefix(),
            reference_key: args.log_refkey.clone(),
        })
        .with_ansi(stderr().is_terminal())
        // They would go to stderr, which is the writer that failed.
        .log_internal_errors(false)
        .with_writer(stderr);
    let installed = tracing_subscriber::registry()
        .with(traces)
        .with(filter(args.verbosity()))
        .with(SpanFieldsLayer)
        .with(EventLayer)
        .with(lines)
        .try_init();
    if let Err(error) = installed {
        tracing::debug!("the log subscriber stays as it was: {error}");
    }
}

/// The filter of `RUST_LOG`, or else that of the command line.
///
/// `RUST_LOG` may select by spans and their fields, which costs time with every span.
fn filter<S: Subscriber + for<'a> LookupSpan<'a>>(
    verbosity: Verbosity,
) -> Box<dyn Layer<S> + Send + Sync> {
    match EnvFilter::try_from_default_env() {
        Ok(chosen) => chosen.boxed(),
        Err(_) => targets(verbosity).boxed(),
    }
}

fn targets(verbosity: Verbosity) -> Targets {
    let everything = Targets::new();
    match verbosity {
        Verbosity::Quiet => everything.with_default(Level::WARN),
        Verbosity::Normal => everything.with_default(Level::INFO),
        Verbosity::Verbose => everything
            .with_default(Level::DEBUG)
            .with_targets(NOISY_LIBRARIES.map(|library| (library, Level::INFO))),
        Verbosity::Debug => everything.with_default(Level::DEBUG),
    }
}
