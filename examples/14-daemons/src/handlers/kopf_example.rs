//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

const PAUSE: Duration = Duration::from_secs(1);

impl KopfExampleHandlers for Operator {
    /// Runs for a KopfExample as long as the object exists.
    async fn background_sync(&self, cx: &mut DaemonContext<KopfExample>) -> HandlerResult {
        let name = cx.name().to_owned();
        cx.blocking(move |stop| {
            while stop.sleep_blocking(PAUSE) {
                info!("=> Ping from a thread for {name}");
            }
        })
        .await?;
        info!("=> The thread has ended: {}", cx.stop().reasons());
        Ok(())
    }

    /// Runs for a KopfExample as long as the object exists.
    async fn background_async(&self, cx: &mut DaemonContext<KopfExample>) -> HandlerResult {
        while cx.sleep(PAUSE).await {
            let field = cx.object().spec.field.clone().unwrap_or_default();
            info!("=> Ping from a task: field={field:?}, retry={}", cx.retry());
            if field == "fail" && cx.retry() == 0 {
                return Err(HandlerError::temporary_after(PAUSE, "Trying once more!"));
            }
        }
        cx.patch()
            .set("status.message", "Accompanying is finished.");
        Ok(())
    }

    /// Runs for a KopfExample as long as the object exists.
    async fn endless(&self, cx: &mut DaemonContext<KopfExample>) -> HandlerResult {
        loop {
            info!("=> Ping from a task that ignores the stop signal");
            info!("=> The field is {:?} now", cx.changed().await.spec.field);
        }
    }
}
