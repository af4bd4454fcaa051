//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called for a KopfExample every 1s.
    async fn every_second(&self, cx: &mut TimerContext<KopfExample>) -> HandlerResult<Value> {
        let ticks = cx.raw()["status"]["every_second"]["ticks"].as_u64();
        Ok(json!({"ticks": ticks.unwrap_or_default() + 1}))
    }

    /// Called for a KopfExample every 1s, while it has not changed for 2s.
    async fn when_quiet_sync(&self, cx: &mut TimerContext<KopfExample>) -> HandlerResult {
        let field = cx.object().spec.field.clone().unwrap_or_default();
        cx.blocking(move |_| {
            std::thread::sleep(Duration::from_millis(100));
            info!("=> Ping from a thread: field={field:?}");
        })
        .await
    }

    /// Called for a KopfExample once it has not changed for 3s.
    async fn settled(&self, cx: &mut TimerContext<KopfExample>) -> HandlerResult {
        info!("=> Settled: field={:?}", cx.object().spec.field);
        Ok(())
    }

    /// Called for a KopfExample every 1s.
    async fn fragile(&self, cx: &mut TimerContext<KopfExample>) -> HandlerResult {
        if cx.retry() < 3 {
            return Err("Oops!".into());
        }
        Err(HandlerError::permanent("That is enough."))
    }
}
