//! The hooks of the operator: startup, cleanup, login and probes.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::hooks::Hooks;

impl Hooks for Operator {
    /// Called when the operator starts. The operator sends no request to the cluster before this
    /// succeeds.
    async fn startup_fn(&self, _cx: &mut StartupContext) -> HandlerResult {
        info!("=> The operator starts in its thread");
        Ok(())
    }

    /// Called when the operator stops, after all other handlers have ended.
    async fn cleanup_fn(&self, _cx: &mut CleanupContext) -> HandlerResult {
        info!("=> The operator stops");
        Ok(())
    }
}
