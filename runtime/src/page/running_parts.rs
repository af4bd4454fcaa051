//! The parts of the operator that start after its page, and end before it.

use std::sync::{Arc, OnceLock, Weak};

use tokio::runtime::Handle;

use crate::background::Background;
use crate::process::kinds::HandledKinds;

/// The parts that the page asks, once they run; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RunningParts(Arc<OnceLock<StartedParts>>);

struct StartedParts {
    background: Weak<Background>,
    kinds: Weak<HandledKinds>,
    /// The connections to the API server belong to this runtime.
    runtime: Handle,
}

impl RunningParts {
    /// Shows these parts.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn set(&self, background: &Arc<Background>, kinds: &Arc<HandledKinds>) {
        let started = StartedParts {
            background: Arc::downgrade(background),
            kinds: Arc::downgrade(kinds),
            runtime: Handle::current(),
        };
        // An operator starts once.
        let _ = self.0.set(started);
    }

    pub(super) fn background(&self) -> Option<Arc<Background>> {
        self.0.get()?.background.upgrade()
    }

    pub(super) fn kinds(&self) -> Option<Arc<HandledKinds>> {
        self.0.get()?.kinds.upgrade()
    }

    /// Runs a request to the API server on the runtime of the operator; none if it has ended.
    pub(super) async fn request<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let runtime = self.0.get()?.runtime.clone();
        runtime.spawn(request).await.ok()
    }
}
