//! The inputs and the methods that the contexts of daemons and timers share.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use serde_json::Value;

use crate::context::blocking;
use crate::context::draft::DraftSource;
use crate::context::stop::StopSignal;
use crate::handler::error::HandlerError;
use crate::process::execute::handler_scope::HandlerScope;
use crate::process::persist::background_write::BackgroundObject;

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
        let (stop, alive) = (self.stop.clone(), Arc::clone(&self.alive));
        blocking::run(move || {
            let _alive = alive;
            work(stop)
        })
        .await
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
        adoption_accessors!($context, inputs.scope);
        draft_accessors!($context, effects.patch, inputs);
        event_accessors!($context, inputs.scope);
    };
}

pub(super) use background_context;
