//! Signals: the first asks the operator to stop, the second does not ask.

use tokio_util::sync::CancellationToken;
use tracing::info;

/// Cancels `stop` at the first signal and returns at the second.
pub(super) async fn signals(stop: CancellationToken) -> std::io::Result<()> {
    let mut signals = Signals::new()?;
    signals.next().await;
    info!("stopping: handlers that run may finish; another signal stops at once");
    stop.cancel();
    signals.next().await;
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

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
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

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
