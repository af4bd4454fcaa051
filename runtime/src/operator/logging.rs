//! Where log lines go and how they look.

mod line;
mod reference;

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::line::{Lines, NoFields};
use self::reference::References;
use super::args::{LoggingArgs, Verbosity};

/// Installs the subscriber of the process, unless the embedding program already has one.
pub(super) fn init(args: &LoggingArgs) {
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
        .with(filter)
        .with(References)
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
