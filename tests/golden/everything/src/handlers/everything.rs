//! Handlers for objects of `Everything`.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::everything::{DynamicObject, EverythingHandlers};

impl EverythingHandlers for Operator {
    /// Called for every watch event of an object of `Everything`.
    async fn anything_seen(&self, cx: &mut EventContext<DynamicObject>) -> HandlerResult {
        info!("anything_seen was called: {:?}", cx.event_type());
        Ok(())
    }
}
