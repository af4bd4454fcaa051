//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        for item in cx.object().spec.items.clone().unwrap_or_default() {
            cx.sub(SubHandler::new(&item), move |_| {
                info!("=== Handling creation for {item}. ===");
                Box::pin(async { Ok(()) })
            });
        }
        Ok(())
    }
}
