//! Handlers for KopfExample objects.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        cx.event("SomeType", "SomeReason", "Some message");
        cx.warn("SomeReason", "Some message");
        cx.info("SomeReason", "Some message");
        let error = "a lot".parse::<u32>().unwrap_err();
        cx.exception("SomeReason", "Some exception:", error);

        let child = cx.apply(ConfigMap::default()).await?;
        let message = format!("Made for {}", cx.name());
        cx.recorder().on(&child)?.info("SomeReason", message);
        Ok(())
    }

    /// Called when a KopfExample is changed.
    async fn update_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        for _ in 0..100 {
            cx.warn("Repeated", "Said a hundred times");
        }
        Ok(())
    }
}
