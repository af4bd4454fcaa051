//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created or changed.
    async fn handle(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("{} is handled here: {}", cx.name(), cx.reason());
        Ok(())
    }
}
