//! Handlers for Warehouse objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::warehouse::{Warehouse, WarehouseHandlers};

impl WarehouseHandlers for Operator {
    /// Called when a Warehouse is created.
    async fn built(&self, cx: &mut ChangeContext<Warehouse>) -> HandlerResult {
        info!("built was called: {}", cx.reason());
        Ok(())
    }
}
