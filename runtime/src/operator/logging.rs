//! Where log lines go and how they look.

mod line;
mod reference;

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Identity, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use self::line::{Lines, NoFields};
use self::reference::References;
use super::args::{LoggingArgs, Verbosity};
use crate::engine::voice::EventLayer;

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
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(directives(args.verbosity())));
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
        .with(filter)
        .with(References)
        .with(EventLayer)
        .with(lines)
        .try_init();
    if let Err(error) = installed {
        tracing::debug!("the log subscriber stays as it was: {error}");
    }
}

/// The libraries below are loud at their own debug level, and seldom what one looks for.
fn directives(verbosity: Verbosity) -> &'static str {
    match verbosity {
        Verbosity::Quiet => "warn",
        Verbosity::Normal => "info",
        Verbosity::Verbose => "debug,hyper_util=info,hyper=info,rustls=info,tower=info,kube=info",
        Verbosity::Debug => "debug",
    }
}
