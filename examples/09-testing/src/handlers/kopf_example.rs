//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult<Value> {
        info!("Something was logged here.");
        if cx.retry() == 0 {
            let (soon, message) = (Duration::from_secs(1), "Not at the first attempt.");
            return Err(HandlerError::temporary_after(soon, message));
        }
        Ok(json!({"attempts": cx.retry() + 1}))
    }

    /// Called when a KopfExample is being deleted.
    async fn delete_fn(&self, _: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Deleted, really deleted.");
        Ok(())
    }
}
