//! The hooks of the operator: startup, cleanup, login and probes.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::hooks::Hooks;

impl Hooks for Operator {
    /// Builds the state when the operator starts, before all other handlers. It is called again until
    /// it succeeds.
    async fn get_ready(cx: &mut StartupContext) -> HandlerResult<Self> {
        info!("=> Ready in a second");
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The handlers of this operator are quick: two seconds are enough to finish.
        cx.settings().shutdown.grace = Duration::from_secs(2);
        Ok(Self::default())
    }

    /// Called when the operator starts. The operator sends no request to the cluster before this
    /// succeeds.
    async fn get_lucky(&self, cx: &mut StartupContext) -> HandlerResult {
        if cx.retry() < 2 {
            let soon = Duration::from_millis(100);
            return Err(HandlerError::temporary_after(soon, "no luck yet"));
        }
        info!("=> Lucky at attempt {}", cx.retry() + 1);
        Ok(())
    }

    /// Called when the operator stops, after all other handlers have ended.
    async fn end_tasks(&self, _cx: &mut CleanupContext) -> HandlerResult {
        let mut tasks = self.tasks.lock().await;
        info!("=> {} tasks must end", tasks.len());
        self.ending.send_replace(true);
        while tasks.join_next().await.is_some() {}
        info!("=> All tasks have ended");
        Ok(())
    }
}
