//! The inputs and the methods that the contexts of daemons and timers share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::{Span, warn};

use crate::context::draft::DraftSource;
use crate::context::stop::StopSignal;
use crate::events::log_layer::LogPoster;
use crate::handler::error::HandlerError;
use crate::process::execute::handler_scope::HandlerScope;
use crate::process::persist::background_write::BackgroundObject;
use crate::task::panic_message;

/// After this time without a free thread, blocking work logs a warning.
const THREAD_WAIT_WARNING: Duration = Duration::from_secs(5);

/// The inputs of one call of a daemon or timer.
pub(crate) struct BackgroundInputs {
    pub(crate) scope: HandlerScope,
    pub(crate) object: BackgroundObject,
    pub(crate) stop: StopSignal,
    /// The daemon or timer counts as running until every clone of this is dropped.
    pub(crate) alive: Arc<dyn Send + Sync>,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

impl BackgroundInputs {
    /// Runs a closure on a thread where it may block, and waits for it.
    ///
    /// The runtime cannot stop a thread: the closure takes the stop signal, and the daemon or
    /// timer counts as running until the closure has returned.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(StopSignal) -> T + Send + 'static,
    ) -> Result<T, HandlerError> {
        let (began, beginning) = oneshot::channel();
        let (stop, alive) = (self.stop.clone(), Arc::clone(&self.alive));
        let (span, log_poster) = (Span::current(), LogPoster::current());
        let thread = tokio::task::spawn_blocking(move || {
            // The receiver is gone if the handler was cancelled meanwhile.
            let _ = began.send(());
            let work = || catch_unwind(AssertUnwindSafe(|| work(stop)));
            let done = span.in_scope(|| LogPoster::scope_sync(log_poster, work));
            drop(alive);
            done
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
            Err(error) => Err(HandlerError::arbitrary(error.to_string())),
        }
    }
}

impl DraftSource for BackgroundInputs {
    fn drafted(&self) -> Value {
        self.object.newest()
    }
}

/// The methods that the contexts of daemons and timers share, except those that return the object.
macro_rules! background_context {
    ($context:ident) => {
        impl<K> $context<K> {
            /// The stop signal, to pass on to other tasks or threads.
            pub fn stop(&self) -> &StopSignal {
                &self.inputs.stop
            }

            /// Sleeps until the time has passed or the stop signal is set. Returns true if the
            /// handler should go on: `while cx.sleep(minute).await { … }`.
            #[must_use = "false means that the handler should return"]
            pub async fn sleep(&self, duration: Duration) -> bool {
                self.inputs.stop.sleep(duration).await
            }

            /// Runs a closure that blocks on a separate thread, and waits for it.
            ///
            /// The runtime cannot stop a thread: the closure takes the stop signal and must
            /// return soon after it is set. Until it returns, the finalizer holds the object.
            ///
            /// # Errors
            /// If the closure panics.
            pub async fn blocking<T: Send + 'static>(
                &self,
                work: impl FnOnce(StopSignal) -> T + Send + 'static,
            ) -> Result<T, HandlerError> {
                self.inputs.blocking(work).await
            }

            /// Writes the changes of the draft and the patch now. The next draft begins with the
            /// newest state of the object.
            ///
            /// # Errors
            /// If the API server rejects the changes. While the API server cannot be reached,
            /// this waits.
            pub async fn write(&self) -> HandlerResult {
                self.draft.settle(&self.effects.patch)?;
                let writes = std::mem::take(&mut *self.effects.patch.lock());
                self.inputs.object.write(writes).await?;
                Ok(())
            }

            /// Sets the result of the handler. The runtime writes it to `status.<handler id>` if
            /// this attempt succeeds.
            ///
            /// # Errors
            /// If the value cannot be expressed in JSON.
            pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
                self.effects.result.put(result)
            }
        }

        object_accessors!($context, inputs.scope);
        existing_object_accessors!($context, inputs.scope);
        handler_accessors!($context, inputs);
        attempt_accessors!($context, inputs);
        adoption_accessors!($context);
        draft_accessors!($context, effects.patch, inputs);
        event_accessors!($context, inputs.scope);
    };
}

pub(super) use background_context;
