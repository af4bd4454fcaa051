//! Work that blocks, on threads of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{Span, warn};

use crate::events::log_layer::LogPoster;
use crate::handler::error::HandlerError;
use crate::task::panic_message;

/// After this time without a free thread, blocking work logs a warning.
const THREAD_WAIT_WARNING: Duration = Duration::from_secs(5);

/// Runs a closure on a thread where it may block, and waits for it. Its log lines are those of the
/// handler. What it owns is dropped on the thread when it has ended, even if the handler has ended
/// before.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HandlerError> {
    let (began, beginning) = oneshot::channel();
    let (span, log_poster) = (Span::current(), LogPoster::current());
    let thread = tokio::task::spawn_blocking(move || {
        // The receiver is gone if the handler was cancelled meanwhile.
        let _ = began.send(());
        let work = || catch_unwind(AssertUnwindSafe(work));
        span.in_scope(|| LogPoster::scope_sync(log_poster, work))
    });
    if tokio::time::timeout(THREAD_WAIT_WARNING, beginning)
        .await
        .is_err()
    {
        warn!("blocking work waits for a thread: all threads of the pool are in use");
    }
    match thread.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(payload)) => {
            let message = panic_message(&*payload);
            Err(HandlerError::arbitrary(format!("panicked: {message}")))
        }
        Err(error) => Err(error.into()),
    }
}

/// The method of contexts without a stop signal.
macro_rules! blocking_accessors {
    ($context:ident) => {
        impl<K> $context<K> {
            /// Runs a closure that blocks on a separate thread, and waits for it.
            ///
            /// The runtime cannot stop a thread: if the handler ends before the closure, for
            /// example by its timeout, the closure goes on beside the next attempt.
            ///
            /// # Errors
            /// If the closure panics.
            pub async fn blocking<T: Send + 'static>(
                &self,
                work: impl FnOnce() -> T + Send + 'static,
            ) -> Result<T, $crate::HandlerError> {
                $crate::context::blocking::run(work).await
            }
        }
    };
}

pub(super) use blocking_accessors;
