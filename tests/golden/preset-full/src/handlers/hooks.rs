//! What happens to the operator as a whole.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::hooks::Hooks;

impl Hooks for Operator {
    /// Called when the operator starts: nothing is asked of the cluster before it has succeeded.
    async fn startup_fn(&self, cx: &mut StartupContext) -> HandlerResult {
        info!("startup_fn was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator stops, after all other handlers have ended.
    async fn cleanup_fn(&self, cx: &mut CleanupContext) -> HandlerResult {
        info!("cleanup_fn was called: attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when credentials for the cluster are needed, or those in use do not work any more.
    async fn login_fn(&self, cx: &mut LoginContext) -> LoginResult {
        info!("login_fn was called: attempt {}", cx.retry() + 1);
        Credentials::infer().await
    }

    /// Called when Kubernetes asks whether the operator is alive, but not more often than every ten
    /// seconds; its result is shown under its id, and its failure makes Kubernetes restart the
    /// operator.
    async fn probe_fn(&self, cx: &mut ProbeContext) -> HandlerResult {
        cx.set_result(&"well")?;
        Ok(())
    }
}
