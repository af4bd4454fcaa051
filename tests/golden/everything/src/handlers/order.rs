//! Handlers for Order objects.

use k8s_openapi::api::batch::v1::Job;
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::order::{Order, OrderHandlers, OrderReconcile};

impl OrderHandlers for Operator {
    /// Called when an Order is created.
    async fn ordered(&self, cx: &mut ChangeContext<Order>) -> HandlerResult {
        info!("ordered was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an Order is created, changed (its status included) or found at the start, when
    /// its ConfigMap, Job, Deployment, Warehouse or Gadget is changed or gone, when a Secret that
    /// it uses changes, and 10m after the last call.
    async fn reconcile(&self, cx: &mut OrderReconcile, _param: i64) -> HandlerResult {
        info!("reconcile was called: {:?}", cx.reasons());
        Ok(())
    }

    /// Called when a Job of an Order was changed, appeared or is gone.
    async fn job_changed(&self, cx: &mut ChildContext<Order, Job>) -> HandlerResult {
        info!("job_changed was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Whether the filter of `reconcile` accepts an Order.
    fn is_open(&self, _cx: &FilterContext<Order>, _param: i64) -> bool {
        true
    }
}
