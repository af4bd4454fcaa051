//! Handlers for objects of `Toys`.

use std::collections::BTreeMap;

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::toys::{DynamicObject, ToysByKind, ToysHandlers};

/// The in-memory state of an object of `Toys` while the operator runs; its handlers share it.
#[derive(Debug, Default)]
pub struct ToyMemo {}

impl Memo<DynamicObject> for ToyMemo {}

impl ToysHandlers for Operator {
    type Memo = ToyMemo;

    /// Called for every watch event of an object of `Toys`.
    async fn toy_seen(&self, cx: &mut EventContext<DynamicObject>) -> HandlerResult {
        info!("toy_seen was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called when an object of `Toys` is created, is changed, is being deleted or already exists
    /// when the operator starts.
    async fn toy_changed(&self, cx: &mut ChangeContext<DynamicObject>) -> HandlerResult {
        info!("toy_changed was called: {}", cx.reason());
        Ok(())
    }

    /// Called when `spec.size` of an object of `Toys` changes.
    async fn toy_resized_spec_size(
        &self,
        cx: &mut FieldContext<DynamicObject, Value>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "toy_resized_spec_size was called");
        Ok(())
    }

    /// Called when `metadata.labels` of an object of `Toys` changes.
    async fn toy_resized_metadata_labels(
        &self,
        cx: &mut FieldContext<DynamicObject, BTreeMap<String, String>>,
    ) -> HandlerResult {
        info!(
            old = ?cx.old_value(),
            new = ?cx.new_value(),
            "toy_resized_metadata_labels was called"
        );
        Ok(())
    }

    /// Called for an object of `Toys` every 1m.
    async fn toy_tick(&self, cx: &mut TimerContext<DynamicObject>) -> HandlerResult {
        info!("toy_tick was called: {}", cx.name());
        Ok(())
    }

    /// Runs for an object of `Toys` as long as the object exists.
    async fn toy_follow(&self, cx: &mut DaemonContext<DynamicObject>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("toy_follow is running");
        }
        Ok(())
    }

    /// Returns the keys and values of an object of `Toys` in the index `toys_by_kind`.
    async fn toys_by_kind(&self, cx: &mut IndexContext<DynamicObject>) -> IndexResult<ToysByKind> {
        debug!("toys_by_kind was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Whether the filter of `toy_changed` accepts a DynamicObject.
    fn is_toy(&self, _cx: &FilterContext<DynamicObject>) -> bool {
        true
    }

    /// The delay before `toy_follow` starts for an object of `Toys`.
    fn toy_patience(&self, _object: &DynamicObject) -> Duration {
        Duration::ZERO
    }
}
