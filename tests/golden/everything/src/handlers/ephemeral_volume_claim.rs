//! Handlers for EphemeralVolumeClaim objects.

use std::collections::BTreeMap;

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::ephemeral_volume_claim::{
    ByClass, EphemeralVolumeClaim, EphemeralVolumeClaimClass, EphemeralVolumeClaimHandlers, Mirror,
    Mount, Quantity,
};

/// The in-memory state of an EphemeralVolumeClaim while the operator runs; its handlers share it.
#[derive(Debug, Default)]
pub struct ClaimMemo {}

impl Memo<EphemeralVolumeClaim> for ClaimMemo {}

impl EphemeralVolumeClaimHandlers for Operator {
    type Memo = ClaimMemo;

    /// Called when an EphemeralVolumeClaim is created.
    async fn create_pvc(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("create_pvc was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim is created, is changed, is being deleted or already
    /// exists when the operator starts.
    async fn whatever(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("whatever was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim is being deleted.
    async fn release(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("release was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim is created.
    async fn measured(
        &self,
        cx: &mut ChangeContext<EphemeralVolumeClaim>,
        _param: &BTreeMap<String, u32>,
    ) -> HandlerResult<Vec<u32>> {
        info!("measured was called: {}", cx.reason());
        Err(HandlerError::permanent("measured has no result yet"))
    }

    /// Called when an EphemeralVolumeClaim is created.
    /// Called when an EphemeralVolumeClaim already exists when the operator starts.
    async fn scaled(
        &self,
        cx: &mut ChangeContext<EphemeralVolumeClaim>,
        _param: f64,
    ) -> HandlerResult {
        info!("scaled was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim already exists when the operator starts.
    async fn r#type(
        &self,
        cx: &mut ChangeContext<EphemeralVolumeClaim>,
        _param: &Value,
    ) -> HandlerResult {
        info!("type was called: {}", cx.reason());
        Ok(())
    }

    /// Called when `spec.size` of an EphemeralVolumeClaim changes.
    async fn resize(&self, cx: &mut FieldContext<EphemeralVolumeClaim, Quantity>) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "resize was called");
        Ok(())
    }

    /// Called when `metadata.labels` of an EphemeralVolumeClaim changes.
    async fn relabel(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, BTreeMap<String, String>>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "relabel was called");
        Ok(())
    }

    /// Called when `metadata.labels.app.kubernetes.io/name` of an EphemeralVolumeClaim changes.
    async fn renamed(&self, cx: &mut FieldContext<EphemeralVolumeClaim, String>) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "renamed was called");
        Ok(())
    }

    /// Called when `spec.class` of an EphemeralVolumeClaim changes.
    async fn reshape_spec_class(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, EphemeralVolumeClaimClass>,
        _param: &str,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "reshape_spec_class was called");
        Ok(())
    }

    /// Called when `spec.mounts` of an EphemeralVolumeClaim changes.
    async fn reshape_spec_mounts(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, Vec<Mount>>,
        _param: &str,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "reshape_spec_mounts was called");
        Ok(())
    }

    /// Called when `spec.extra.any.depth` of an EphemeralVolumeClaim changes.
    async fn extra_changed(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, Value>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "extra_changed was called");
        Ok(())
    }

    /// Called when `spec.ttlSeconds` of an EphemeralVolumeClaim is changed by an update.
    async fn new_ttl(&self, cx: &mut FieldContext<EphemeralVolumeClaim, i32>) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "new_ttl was called");
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim is created, with `spec.type`.
    async fn typed(&self, cx: &mut FieldContext<EphemeralVolumeClaim, String>) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "typed was called");
        Ok(())
    }

    /// Called when `status.phase` of an EphemeralVolumeClaim changes.
    async fn phase_changed(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, String>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "phase_changed was called");
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim is changed.
    async fn filtered(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("filtered was called: {}", cx.reason());
        Ok(())
    }

    /// Called when `spec.size` of an EphemeralVolumeClaim is changed by an update.
    async fn combined(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, Quantity>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "combined was called");
        Ok(())
    }

    /// Called for every watch event of an EphemeralVolumeClaim with `spec.parameters`.
    async fn seen_spec_parameters(
        &self,
        cx: &mut EventContext<EphemeralVolumeClaim>,
    ) -> HandlerResult {
        info!("seen_spec_parameters was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called for every watch event of an EphemeralVolumeClaim with `spec.size`.
    async fn seen_spec_size(&self, cx: &mut EventContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("seen_spec_size was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called for an EphemeralVolumeClaim every 30s, while it has not changed for 10s.
    async fn expire(&self, cx: &mut TimerContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("expire was called: {}", cx.name());
        Ok(())
    }

    /// Called for an EphemeralVolumeClaim every 1.5s.
    async fn beat(
        &self,
        cx: &mut TimerContext<EphemeralVolumeClaim>,
        _param: i64,
    ) -> HandlerResult {
        info!("beat was called: {}", cx.name());
        Ok(())
    }

    /// Called for an EphemeralVolumeClaim with `spec.size` once it has not changed for 5m.
    async fn settle(&self, cx: &mut TimerContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("settle was called: {}", cx.name());
        Ok(())
    }

    /// Runs for an EphemeralVolumeClaim as long as the object exists.
    async fn watch_usage(&self, cx: &mut DaemonContext<EphemeralVolumeClaim>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("watch_usage is running");
        }
        Ok(())
    }

    /// Runs for an EphemeralVolumeClaim with `spec.class` as long as the object exists.
    async fn follow_spec_class(
        &self,
        cx: &mut DaemonContext<EphemeralVolumeClaim>,
    ) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("follow_spec_class is running");
        }
        Ok(())
    }

    /// Runs for an EphemeralVolumeClaim with `spec.mounts` as long as the object exists.
    async fn follow_spec_mounts(
        &self,
        cx: &mut DaemonContext<EphemeralVolumeClaim>,
    ) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("follow_spec_mounts is running");
        }
        Ok(())
    }

    /// Returns the keys and values of an EphemeralVolumeClaim with `spec.class` in the index
    /// `by_class`.
    async fn by_class(&self, cx: &mut IndexContext<EphemeralVolumeClaim>) -> IndexResult<ByClass> {
        debug!("by_class was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Returns the keys and values of an EphemeralVolumeClaim in the index `mirror`.
    async fn mirror(&self, cx: &mut IndexContext<EphemeralVolumeClaim>) -> IndexResult<Mirror> {
        debug!("mirror was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Whether the filter of `extra_changed` accepts the new `spec.extra.any.depth`.
    fn is_wanted(&self, _value: Option<&Value>, _cx: &FilterContext<EphemeralVolumeClaim>) -> bool {
        true
    }

    /// Whether the filter of `new_ttl` accepts `spec.ttlSeconds`.
    /// Whether the filter of `check_growth` accepts the new `spec.ttlSeconds`.
    fn is_long(&self, _value: Option<&i32>, _cx: &FilterContext<EphemeralVolumeClaim>) -> bool {
        true
    }

    /// Whether the filter of `filtered` accepts the label `size`.
    fn is_size(&self, _value: Option<&str>, _cx: &FilterContext<EphemeralVolumeClaim>) -> bool {
        true
    }

    /// Whether the filter of `filtered` accepts an EphemeralVolumeClaim.
    /// Whether the filter of `combined` accepts an EphemeralVolumeClaim.
    /// Whether the filter of `beat` accepts an EphemeralVolumeClaim.
    /// Whether the filter of `mirror` accepts an EphemeralVolumeClaim.
    fn is_due(&self, _cx: &FilterContext<EphemeralVolumeClaim>) -> bool {
        true
    }

    /// Whether the filter of `combined` accepts `spec.size`.
    fn is_small(
        &self,
        _value: Option<&Quantity>,
        _cx: &FilterContext<EphemeralVolumeClaim>,
    ) -> bool {
        true
    }

    /// Whether the filter of `combined` accepts an EphemeralVolumeClaim.
    fn is_late(&self, _cx: &FilterContext<EphemeralVolumeClaim>) -> bool {
        true
    }

    /// Whether the filter of `settle` accepts `spec.size`.
    fn is_size_known(
        &self,
        _value: Option<&Quantity>,
        _cx: &FilterContext<EphemeralVolumeClaim>,
    ) -> bool {
        true
    }

    /// The delay before `settle` starts for an EphemeralVolumeClaim.
    /// The delay before `follow_spec_class` starts for an EphemeralVolumeClaim.
    /// The delay before `follow_spec_mounts` starts for an EphemeralVolumeClaim.
    fn patience(&self, _object: &EphemeralVolumeClaim) -> Duration {
        Duration::ZERO
    }

    /// Decides whether an EphemeralVolumeClaim may be created or changed.
    async fn check_size(
        &self,
        cx: &mut ValidationContext<EphemeralVolumeClaim>,
    ) -> AdmissionResult {
        info!("check_size was called: {}", cx.operation());
        Ok(())
    }

    /// Decides whether the `status` subresource of an EphemeralVolumeClaim may be stored.
    async fn check_status(
        &self,
        cx: &mut ValidationContext<EphemeralVolumeClaim>,
    ) -> AdmissionResult {
        info!("check_status was called: {}", cx.operation());
        Ok(())
    }

    /// Decides whether an EphemeralVolumeClaim or one of its subresources may be stored.
    async fn anything(&self, cx: &mut ValidationContext<Value>, _param: &Value) -> AdmissionResult {
        info!("anything was called: {}", cx.operation());
        Ok(())
    }

    /// Can change an EphemeralVolumeClaim before it is created.
    async fn default_class(
        &self,
        cx: &mut MutationContext<EphemeralVolumeClaim>,
    ) -> AdmissionResult {
        info!("default_class was called: {}", cx.operation());
        Ok(())
    }

    /// Can change an EphemeralVolumeClaim before it is stored.
    async fn check_growth(
        &self,
        cx: &mut MutationContext<EphemeralVolumeClaim>,
    ) -> AdmissionResult {
        info!("check_growth was called: {}", cx.operation());
        Ok(())
    }

    /// Whether the filter of `anything` accepts the reviewed object.
    fn is_any_due(&self, _cx: &FilterContext<Value>, _param: &Value) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use kopf_runtime::TestContext;

    use super::*;

    #[tokio::test]
    async fn the_object_is_left_as_it_is() {
        let object = json!({
            "spec": {
                "size": 1
            }
        });
        let mut cx = TestContext::new(&object).change();
        Operator::default().create_pvc(&mut cx).await.unwrap();
        assert_eq!(cx.changes(), json!({}));
    }
}
