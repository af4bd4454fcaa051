//! Adapters from the untyped runtime to typed index functions.

use std::time::Duration;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::context::index::{IndexContext, IndexInputs};
use crate::handler::state::SharedState;
use crate::index::{Index, IndexResult, IndexUpdate, Indices};
use crate::process::execute::invoke::{CallEnd, supervised};

/// An index function without its types.
pub(crate) trait IndexFunction: Send + Sync {
    /// Makes one attempt, for at most `limit`. If it succeeds, it returns the new entries.
    fn call(
        &self,
        inputs: IndexInputs,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, (CallEnd, Option<Box<dyn IndexUpdate>>)>;

    /// The update that removes the entries of an object.
    fn nothing(&self, indices: &Indices) -> Box<dyn IndexUpdate>;
}

pub(crate) struct IndexAdapter<I: Index, K, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut IndexContext<K>) -> BoxFuture<'a, IndexResult<I>>,
}

impl<I, K, S> IndexFunction for IndexAdapter<I, K, S>
where
    I: Index,
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(
        &self,
        inputs: IndexInputs,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, (CallEnd, Option<Box<dyn IndexUpdate>>)> {
        Box::pin(async move {
            let object = match K::deserialize(&*inputs.raw) {
                Ok(object) => object,
                Err(error) => return (CallEnd::Undecodable(error.to_string()), None),
            };
            let indices = inputs.scope.services.indices.clone();
            let mut cx = IndexContext::new(object, inputs);
            let mut entries = None;
            let call = async {
                entries = Some((self.function)(self.state.get(), &mut cx).await?);
                Ok(())
            };
            let end = supervised(Box::pin(call), limit).await;
            (end, entries.map(|entries| indices.update::<I>(entries)))
        })
    }

    fn nothing(&self, indices: &Indices) -> Box<dyn IndexUpdate> {
        indices.update::<I>(Vec::new())
    }
}
