//! Where log lines go and how they look.

mod line;
mod reference;

use std::io::{IsTerminal as _, stderr};

use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Identity, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use self::line::{Lines, NoFields};
use self::reference::References;
use super::args::{LoggingArgs, Verbosity};
use crate::events::log_layer::EventLayer;

/// Libraries that are loud at their own debug level, and seldom what one looks for.
const LOUD: [&str; 5] = ["hyper_util", "hyper", "rustls", "tower", "kube"];

/// What has to be kept for traces to be exported until the end.
#[cfg(feature = "otel")]
pub(super) type Traces = Option<super::telemetry::Telemetry>;

/// Traces are not exported.
#[cfg(not(feature = "otel"))]
pub(super) struct Traces;

/// Installs the subscriber of the process, unless the embedding program already has one.
pub(super) fn init(args: &LoggingArgs) {
    install(args, None::<Identity>);
}

/// The same, with traces if the environment asks for them.
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
        tracing::warn!("traces are not exported: {}", super::chain(&failure));
    }
    traces
}

/// The same: this build has no traces.
#[cfg(not(feature = "otel"))]
pub(super) fn init_with_traces(args: &LoggingArgs, _operator: &'static str) -> Traces {
    init(args);
    Traces
}

fn install(args: &LoggingArgs, traces: Option<impl Layer<Registry> + Send + Sync>) {
    let lines = fmt::layer()
        .fmt_fields(NoFields)
        .event_format(Lines {
            format: args.log_format,
            prefix: args.log_prefix(),
            reference_key: args.log_refkey.clone(),
        })
        .with_ansi(stderr().is_terminal())
        // To whom, if nobody listens?
        .log_internal_errors(false)
        .with_writer(stderr);
    let installed = tracing_subscriber::registry()
        .with(traces)
        .with(filter(args.verbosity()))
        .with(References)
        .with(EventLayer)
        .with(lines)
        .try_init();
    if let Err(error) = installed {
        tracing::debug!("the log subscriber stays as it was: {error}");
    }
}

/// What the environment asks for, or else what the command line does.
///
/// The environment may choose by spans and their fields, and pays for that with every span.
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
            .with_targets(LOUD.map(|library| (library, Level::INFO))),
        Verbosity::Debug => everything.with_default(Level::DEBUG),
    }
}
