//! The hooks of the operator: startup, cleanup, login and probes.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::hooks::Hooks;

impl Hooks for Operator {
    /// Called when the operator starts. The operator sends no request to the cluster before this
    /// succeeds.
    async fn startup(&self, cx: &mut StartupContext) -> HandlerResult {
        info!("startup was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator stops, after all other handlers have ended.
    async fn cleanup(&self, cx: &mut CleanupContext) -> HandlerResult {
        info!("cleanup was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator needs credentials for the cluster, or the API server rejects the
    /// current ones.
    async fn login(&self, cx: &mut LoginContext) -> LoginResult {
        info!("login was called: attempt {}", cx.retry() + 1);
        Credentials::infer().await
    }

    /// Called for liveness probes, at most every ten seconds. The probe's response shows the result
    /// under the handler's id; a failure fails the probe, and Kubernetes restarts the operator.
    async fn probe(&self, cx: &mut ProbeContext) -> HandlerResult {
        cx.set_result(&"healthy")?;
        Ok(())
    }
}
