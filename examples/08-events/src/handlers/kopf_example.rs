//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called for every watch event of a KopfExample.
    async fn event_fn_with_error(&self, _: &mut EventContext<KopfExample>) -> HandlerResult {
        Err("Oops!".into())
    }

    /// Called for every watch event of a KopfExample.
    async fn normal_event_fn(&self, cx: &mut EventContext<KopfExample>) -> HandlerResult {
        info!("Event received: {:?} {}", cx.event_type(), cx.raw());
        Ok(())
    }
}
