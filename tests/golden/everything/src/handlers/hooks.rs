//! The hooks of the operator: startup, cleanup, login and probes.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::hooks::Hooks;

impl Hooks for Operator {
    /// Called when the operator starts. The operator sends no request to the cluster before this
    /// succeeds.
    async fn prepare(&self, cx: &mut StartupContext, _param: &Value) -> HandlerResult {
        info!("prepare was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator starts. The operator sends no request to the cluster before this
    /// succeeds.
    async fn tune(&self, cx: &mut StartupContext) -> HandlerResult {
        info!("tune was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator stops, after all other handlers have ended.
    async fn tear_down(&self, cx: &mut CleanupContext) -> HandlerResult {
        info!("tear_down was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator needs credentials for the cluster, or the API server rejects the
    /// current ones.
    async fn sign_in(&self, cx: &mut LoginContext) -> LoginResult {
        info!("sign_in was called: attempt {}", cx.retry() + 1);
        Credentials::infer().await
    }

    /// Called for liveness probes, at most every ten seconds. The probe's response shows the result
    /// under the handler's id; a failure fails the probe, and Kubernetes restarts the operator.
    async fn disk(&self, cx: &mut ProbeContext, _param: &Value) -> HandlerResult {
        cx.set_result(&"healthy")?;
        Ok(())
    }

    /// Called for liveness probes, at most every ten seconds. The probe's response shows the result
    /// under the handler's id; a failure fails the probe, and Kubernetes restarts the operator.
    async fn backlog(&self, cx: &mut ProbeContext) -> HandlerResult {
        cx.set_result(&"healthy")?;
        Ok(())
    }
}
