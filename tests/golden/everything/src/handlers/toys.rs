//! What happens to an object of `Toys`.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::toys::{BTreeMap, DynamicObject, ToysByKind, ToysHandlers, Value};

/// What is remembered of an object of `Toys` while the operator runs; all of its handlers share it.
#[derive(Debug, Default)]
pub struct ToyMemo {}

impl Memo<DynamicObject> for ToyMemo {}

impl ToysHandlers for Operator {
    type Memo = ToyMemo;

    /// Called for everything that is seen of an object of `Toys`.
    async fn toy_seen(&self, cx: &mut EventContext<DynamicObject>) -> HandlerResult {
        info!("toy_seen was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called when an object of `Toys` is created, is changed, is being deleted or is there when
    /// the operator starts.
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
            "toy_resized_metadata_labels was called",
        );
        Ok(())
    }

    /// Called for an object of `Toys` every 1m.
    async fn toy_tick(&self, cx: &mut TimerContext<DynamicObject>) -> HandlerResult {
        info!("toy_tick was called: {}", cx.name());
        Ok(())
    }

    /// Runs beside an object of `Toys` as long as it is there.
    async fn toy_follow(&self, cx: &mut DaemonContext<DynamicObject>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("toy_follow is running");
        }
        Ok(())
    }

    /// Says by which keys of `toys_by_kind` an object of `Toys` is found, and what is found.
    async fn toys_by_kind(&self, cx: &mut IndexContext<DynamicObject>) -> IndexResult<ToysByKind> {
        debug!("toys_by_kind was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Whether a DynamicObject is one for `toy_changed`.
    fn is_toy(&self, _object: &DynamicObject) -> bool {
        true
    }

    /// How long `toy_follow` waits before it begins with an object of `Toys`.
    fn toy_patience(&self, _object: &DynamicObject) -> Duration {
        Duration::ZERO
    }
}
