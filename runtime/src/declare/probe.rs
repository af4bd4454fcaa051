//! A probe handler with its function.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kopf_core::handler::retry::ErrorMode;
use serde_json::Value;

use crate::context::probe::Probe;
use crate::error::HandlerResult;
use crate::handler::probe::ProbeHandler;
use crate::shim::probe::{ProbeFunction, ProbeShim};

/// One declared probe handler.
pub(crate) struct DeclaredProbe {
    pub(crate) id: String,
    pub(crate) errors: ErrorMode,
    pub(crate) timeout: Option<Duration>,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) function: Arc<dyn ProbeFunction>,
}

impl DeclaredProbe {
    pub(crate) fn new<S: Send + Sync + 'static>(
        handler: ProbeHandler,
        state: &Arc<S>,
        function: for<'a> fn(&'a S, &'a mut Probe) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = Arc::clone(state);
        Self {
            id: handler.id.to_owned(),
            errors: handler.errors,
            timeout: handler.timeout,
            param: handler.param.map(Arc::new),
            function: Arc::new(ProbeShim { state, function }),
        }
    }
}
