//! The state of an operator, which its handlers share.

use std::sync::{Arc, OnceLock};

/// The state of an operator, of whose type the handlers are methods: there from the beginning, or
/// built by a handler when the operator starts.
#[derive(Debug)]
pub struct SharedState<S>(Arc<OnceLock<Arc<S>>>);

impl<S> SharedState<S> {
    /// A state that is there from the beginning.
    #[must_use]
    pub fn new(state: S) -> Self {
        Self(Arc::new(OnceLock::from(Arc::new(state))))
    }

    /// A state that [`Hooks::state`](crate::Hooks::state) builds.
    #[must_use]
    pub fn to_be_built() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn set(&self, state: S) {
        // Only one handler builds the state, and it succeeds once.
        let _ = self.0.set(Arc::new(state));
    }

    pub(crate) fn is_built(&self) -> bool {
        self.0.get().is_some()
    }

    /// The state. The runtime calls nothing that needs it before it is built.
    pub(crate) fn get(&self) -> &S {
        self.0.get().expect("the state is built before it is used")
    }
}

impl<S> Clone for SharedState<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> From<&Self> for SharedState<S> {
    fn from(state: &Self) -> Self {
        state.clone()
    }
}

impl<S> From<&Arc<S>> for SharedState<S> {
    fn from(state: &Arc<S>) -> Self {
        Self(Arc::new(OnceLock::from(Arc::clone(state))))
    }
}
