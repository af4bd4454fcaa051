//! Signals: the first asks the operator to stop, the second does not ask.
//!
//! They are heard on a thread of its own: handlers that block all others must not keep the process
//! from ending.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::exit;
use crate::settings::ShutdownSettings;

/// What everything that is not waited for may take on top of the graces.
const MARGIN: Duration = Duration::from_secs(5);

/// How long stopping may take, once it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Patience(Arc<OnceLock<ShutdownSettings>>);

/// The number of a signal that was heard.
type Heard = u8;

// === impl Patience ===

impl Patience {
    /// The settings are as they are going to be.
    pub(super) fn settle(&self, settings: &ShutdownSettings) {
        self.0.get_or_init(|| settings.clone());
    }

    /// After this time something is stuck, and nothing else will end it.
    fn limit(&self) -> Duration {
        let usual = ShutdownSettings::default();
        let settings = self.0.get().unwrap_or(&usual);
        let graces = settings.grace + settings.posting_grace + MARGIN;
        graces.max(settings.deadline)
    }
}

/// Cancels `stop` at the first signal. At the second, or when stopping takes too long, the process
/// ends at once.
pub(super) fn listen(stop: CancellationToken, patience: Patience) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let listening = async move {
        signals.next().await;
        info!("stopping: handlers that run may finish; another signal stops at once");
        stop.cancel();
        let code = match tokio::time::timeout(patience.limit(), signals.next()).await {
            Ok(signal) => {
                error!("stopped at once: handlers were interrupted");
                exit::of_signal(signal)
            }
            Err(_) => {
                error!("the operator does not stop: something blocks it, and it is ended");
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

    async fn next(&mut self) -> Heard {
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

    async fn next(&mut self) -> Heard {
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
    fn nothing_is_ended_before_all_graces_are_over() {
        let patience = Patience::default();
        let usual = ShutdownSettings::default();
        assert!(patience.limit() > usual.grace + usual.posting_grace);
        assert!(patience.limit() >= usual.deadline);
        patience.settle(&ShutdownSettings {
            grace: Duration::from_secs(600),
            ..usual
        });
        assert!(patience.limit() > Duration::from_secs(600));
    }
}
