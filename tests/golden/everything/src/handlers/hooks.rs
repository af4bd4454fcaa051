//! What happens to the operator as a whole.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::hooks::Hooks;

impl Hooks for Operator {
    /// Called when the operator starts: nothing is asked of the cluster before it has succeeded.
    async fn prepare(&self, cx: &mut StartupContext) -> HandlerResult {
        info!("prepare was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator starts: nothing is asked of the cluster before it has succeeded.
    async fn tune(&self, cx: &mut StartupContext) -> HandlerResult {
        info!("tune was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator stops, after all other handlers have ended.
    async fn tear_down(&self, cx: &mut CleanupContext) -> HandlerResult {
        info!("tear_down was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when credentials for the cluster are needed, or those in use do not work any more.
    async fn sign_in(&self, cx: &mut LoginContext) -> LoginResult {
        info!("sign_in was called: attempt {}", cx.retry() + 1);
        Credentials::infer().await
    }

    /// Called when Kubernetes asks whether the operator is alive, but not more often than every ten
    /// seconds; its result is shown under its id, and its failure makes Kubernetes restart the
    /// operator.
    async fn disk(&self, cx: &mut ProbeContext) -> HandlerResult {
        cx.set_result(&"well")?;
        Ok(())
    }

    /// Called when Kubernetes asks whether the operator is alive, but not more often than every ten
    /// seconds; its result is shown under its id, and its failure makes Kubernetes restart the
    /// operator.
    async fn backlog(&self, cx: &mut ProbeContext) -> HandlerResult {
        cx.set_result(&"well")?;
        Ok(())
    }
}
