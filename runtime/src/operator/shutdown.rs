//! Handles signals: the first stops the operator gracefully, the second ends the process at once.
//!
//! A separate thread listens, so that handlers that block all others cannot keep the process from
//! ending.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::exit;
use crate::settings::ShutdownSettings;

/// Extra time for the steps of a shutdown that have no grace period of their own.
const MARGIN: Duration = Duration::from_secs(5);

/// The time that stopping may take; known when the startup handlers are done with the settings.
#[derive(Debug, Clone, Default)]
pub(super) struct ShutdownTimeout(Arc<OnceLock<ShutdownSettings>>);

/// The number of a received signal.
type SignalNumber = u8;

// === impl ShutdownTimeout ===

impl ShutdownTimeout {
    /// Sets the settings, which do not change any more.
    pub(super) fn set(&self, settings: &ShutdownSettings) {
        self.0.get_or_init(|| settings.clone());
    }

    /// After this time, something is stuck and the process has to be ended.
    fn limit(&self) -> Duration {
        let defaults = ShutdownSettings::default();
        let settings = self.0.get().unwrap_or(&defaults);
        let graces = settings.grace.saturating_add(settings.posting_grace);
        graces.saturating_add(MARGIN).max(settings.total())
    }
}

/// Cancels `stop` at the first signal. At the second, or when stopping takes too long, the process
/// ends at once.
pub(super) fn listen(stop: CancellationToken, timeout: ShutdownTimeout) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let listening = async move {
        signals.next().await;
        info!("stopping: running handlers may finish; another signal ends the process at once");
        stop.cancel();
        let code = match tokio::time::timeout(timeout.limit(), signals.next()).await {
            Ok(signal) => {
                error!("ended at once: running handlers were interrupted");
                exit::of_signal(signal)
            }
            Err(_) => {
                error!(
                    "the operator did not stop in time: something blocks it, and the process is ended"
                );
                exit::OVERDUE
            }
        };
        std::process::exit(code.into());
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(listening))?;
    Ok(())
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> SignalNumber {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> SignalNumber {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_longer_than_all_graces_together() {
        let timeout = ShutdownTimeout::default();
        let defaults = ShutdownSettings::default();
        assert!(timeout.limit() > defaults.grace + defaults.posting_grace);
        assert!(timeout.limit() >= defaults.deadline);
        timeout.set(&ShutdownSettings {
            grace: Duration::from_secs(600),
            ..defaults
        });
        assert!(timeout.limit() > Duration::from_secs(600));
    }
}
