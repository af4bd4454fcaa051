//! Where log lines go and how they look.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use super::args::{LogFormat, Verbosity};

/// Installs the subscriber of the process, unless the embedding program already has one.
pub(super) fn init(verbosity: Verbosity, format: LogFormat) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(verbosity)));
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let installed = match format {
        LogFormat::Full => builder.with_target(false).try_init(),
        LogFormat::Plain => builder
            .with_target(false)
            .with_level(false)
            .without_time()
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
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
