//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("create was called: {}", cx.reason());
        Ok(())
    }
}
