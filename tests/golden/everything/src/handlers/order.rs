//! Handlers for Order objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::order::{Order, OrderHandlers};

impl OrderHandlers for Operator {
    /// Called when an Order is created.
    async fn ordered(&self, cx: &mut ChangeContext<Order>) -> HandlerResult {
        info!("ordered was called: {}", cx.reason());
        Ok(())
    }
}
