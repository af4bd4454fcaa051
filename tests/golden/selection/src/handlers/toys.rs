//! Handlers for objects of `Toys`.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::toys::{DynamicObject, ToysHandlers};

impl ToysHandlers for Operator {
    /// Decides whether a DynamicObject may be created.
    async fn check_toy(&self, cx: &mut ValidationContext<DynamicObject>) -> AdmissionResult {
        info!("check_toy was called: {}", cx.operation());
        Ok(())
    }

    /// Can change a DynamicObject or one of its subresources before it is stored.
    async fn complete_toy(&self, cx: &mut MutationContext<Value>) -> AdmissionResult {
        info!("complete_toy was called: {}", cx.operation());
        Ok(())
    }

    /// Whether the filter of `check_toy` accepts a DynamicObject.
    fn is_toy(&self, _cx: &FilterContext<DynamicObject>) -> bool {
        true
    }
}
