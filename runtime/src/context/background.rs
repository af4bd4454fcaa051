//! What daemons and timers have in common: the object beside which they run, and blocking work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::{Span, warn};

use crate::context::stop::StopSignal;
use crate::events::log_layer::LogPoster;
use crate::handler::error::HandlerError;
use crate::process::execute::scope::HandlerScope;
use crate::process::persist::background_write::Delivery;
use crate::task::panic_message;

/// How long blocking work may wait for a thread before people should know.
const PATIENCE_FOR_A_THREAD: Duration = Duration::from_secs(5);

/// What is known before a daemon or timer is called.
pub(crate) struct BackgroundInputs {
    pub(crate) scope: HandlerScope,
    pub(crate) object: Delivery,
    pub(crate) stop: StopSignal,
    /// As long as a part of it exists, the daemon or timer is not gone.
    pub(crate) alive: Arc<dyn Send + Sync>,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

impl BackgroundInputs {
    /// Runs work on a thread where it may block, and waits for it.
    ///
    /// A thread cannot be stopped from outside: it is given the signal, and whoever accompanies
    /// the object counts as running until the work has returned.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(StopSignal) -> T + Send + 'static,
    ) -> Result<T, HandlerError> {
        let (began, beginning) = oneshot::channel();
        let (stop, alive) = (self.stop.clone(), Arc::clone(&self.alive));
        let (span, log_poster) = (Span::current(), LogPoster::current());
        let thread = tokio::task::spawn_blocking(move || {
            // Nobody may be waiting any more, and that is fine.
            let _ = began.send(());
            let work = || catch_unwind(AssertUnwindSafe(|| work(stop)));
            let done = span.in_scope(|| LogPoster::scope_sync(log_poster, work));
            drop(alive);
            done
        });
        if tokio::time::timeout(PATIENCE_FOR_A_THREAD, beginning)
            .await
            .is_err()
        {
            warn!("blocking work waits for a thread: too many others block one each");
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

/// The methods that the contexts of daemons and timers share; the object itself is not among them.
macro_rules! background_context {
    ($context:ident) => {
        impl<K> $context<K> {
            /// The signal to stop, for whatever has to know of it.
            pub fn stop(&self) -> &StopSignal {
                &self.inputs.stop
            }

            /// Sleeps, but not beyond the time to stop. Tells whether to go on:
            /// `while cx.sleep(minute).await { … }`.
            #[must_use = "it tells whether to go on"]
            pub async fn sleep(&self, duration: Duration) -> bool {
                self.inputs.stop.sleep(duration).await
            }

            /// Runs work that blocks, on a thread of its own, and waits for it.
            ///
            /// The work is given the signal to stop, and has to heed it: nobody can stop a thread
            /// from outside. Until it returns, the object is held like by any other work.
            ///
            /// # Errors
            /// If the work panics.
            pub async fn blocking<T: Send + 'static>(
                &self,
                work: impl FnOnce(StopSignal) -> T + Send + 'static,
            ) -> Result<T, HandlerError> {
                self.inputs.blocking(work).await
            }

            /// How many attempts were made before this one.
            pub fn retry(&self) -> u32 {
                self.inputs.retry
            }

            /// When the first of these attempts began.
            pub fn started(&self) -> Timestamp {
                self.inputs.started
            }

            /// How long that was ago when this attempt began.
            pub fn runtime(&self) -> Duration {
                self.inputs.runtime
            }

            /// What the manifest says in `param`.
            pub fn param(&self) -> Option<&Value> {
                self.inputs.param.as_deref()
            }

            /// The id under which the result is delivered.
            pub fn handler_id(&self) -> &str {
                self.inputs.handler.as_str()
            }

            /// What is to be written to the object when this attempt is over, well or not.
            pub fn patch(&self) -> &Patch {
                &self.effects.patch
            }

            /// Writes now what was put into the patch so far.
            ///
            /// # Errors
            /// If the server does not accept it. As long as the server cannot be reached, this
            /// waits.
            pub async fn write(&self) -> HandlerResult {
                let writes = std::mem::take(&mut *self.effects.patch.lock());
                self.inputs.object.deliver(writes).await?;
                Ok(())
            }

            /// Delivers a result into `status.<handler id>`, if this attempt succeeds.
            ///
            /// # Errors
            /// If the value cannot be expressed in JSON.
            pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
                self.effects.result.put(result)
            }

            /// What is remembered of the object while the operator runs; `memo` in the manifest
            /// names the type.
            pub fn memo<M: Memo<K>>(&self) -> &M {
                memo::typed::<K, M>(self.inputs.scope.memo.as_ref())
            }

            /// A client for everything else in the cluster.
            pub fn client(&self) -> &Client {
                &self.inputs.scope.services.client
            }

            /// The objects of a kind in the namespace of this object, or in that of the client if
            /// this one is cluster-wide.
            pub fn api<T>(&self) -> Api<T>
            where
                T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
            {
                self.inputs.scope.api()
            }

            /// An index of the operator, always as it is now.
            pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
                self.inputs.scope.services.indices.get(index)
            }

            /// The resource of the object as the server describes it: its names, categories and verbs.
            ///
            /// Before the server has been asked, it is what the operator was made for.
            pub fn resource(&self) -> &DiscoveredResource {
                &self.inputs.scope.resource
            }

            /// The name of the object.
            pub fn name(&self) -> &str {
                self.inputs.scope.subject.name()
            }

            /// The namespace of the object; none for cluster-wide kinds.
            pub fn namespace(&self) -> Option<&str> {
                self.inputs.scope.subject.namespace()
            }

            /// The identity of the object, which a namesake does not share.
            pub fn uid(&self) -> &str {
                self.inputs.scope.subject.uid()
            }

            /// Makes another object the child of this one: owned by it, named after it with a
            /// suffix of the server's choice, in its namespace, with its labels.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn adopt<T: Child>(&self, child: &mut T) -> Result<(), serde_json::Error> {
                self.adopt_as(child, &Adoption::default())
            }

            /// The same for a child with a name, labels or templates of its own mind.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn adopt_as<T: Child>(
                &self,
                child: &mut T,
                adoption: &Adoption,
            ) -> Result<(), serde_json::Error> {
                hierarchy::adopt(child, &self.raw(), adoption)
            }
        }

        reporting!($context, inputs.scope);
    };
}

pub(super) use background_context;
