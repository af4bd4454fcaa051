//! What happens to an EphemeralVolumeClaim.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::ephemeral_volume_claim::{
    BTreeMap, ByClass, EphemeralVolumeClaim, EphemeralVolumeClaimClass,
    EphemeralVolumeClaimHandlers, Mirror, Mount, Quantity, Value,
};

/// What is remembered of an EphemeralVolumeClaim while the operator runs; all of its handlers share
/// it.
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

    /// Called when an EphemeralVolumeClaim is created, is changed, is being deleted or is there
    /// when the operator starts.
    async fn whatever(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("whatever was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim is being deleted.
    async fn release(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("release was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an EphemeralVolumeClaim is there when the operator starts.
    async fn r#type(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
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

    /// Called when `spec.class` of an EphemeralVolumeClaim changes.
    async fn reshape_spec_class(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, EphemeralVolumeClaimClass>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "reshape_spec_class was called");
        Ok(())
    }

    /// Called when `spec.mounts` of an EphemeralVolumeClaim changes.
    async fn reshape_spec_mounts(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, Vec<Mount>>,
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

    /// Called for everything that is seen of an EphemeralVolumeClaim with `spec.parameters`.
    async fn seen(&self, cx: &mut EventContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("seen was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called for an EphemeralVolumeClaim every 30s, while it has not changed for 10s.
    async fn expire(&self, cx: &mut TimerContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("expire was called: {}", cx.name());
        Ok(())
    }

    /// Called for an EphemeralVolumeClaim every 1.5s.
    async fn beat(&self, cx: &mut TimerContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("beat was called: {}", cx.name());
        Ok(())
    }

    /// Called for an EphemeralVolumeClaim with `spec.size` once it has not changed for 5m.
    async fn settle(&self, cx: &mut TimerContext<EphemeralVolumeClaim>) -> HandlerResult {
        info!("settle was called: {}", cx.name());
        Ok(())
    }

    /// Runs beside an EphemeralVolumeClaim as long as it is there.
    async fn watch_usage(&self, cx: &mut DaemonContext<EphemeralVolumeClaim>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("watch_usage is running");
        }
        Ok(())
    }

    /// Runs beside an EphemeralVolumeClaim with `spec.class` as long as it is there.
    async fn follow_spec_class(&self, cx: &mut DaemonContext<EphemeralVolumeClaim>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("follow_spec_class is running");
        }
        Ok(())
    }

    /// Runs beside an EphemeralVolumeClaim with `spec.mounts` as long as it is there.
    async fn follow_spec_mounts(&self, cx: &mut DaemonContext<EphemeralVolumeClaim>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("follow_spec_mounts is running");
        }
        Ok(())
    }

    /// Says by which keys of `by_class` an EphemeralVolumeClaim with `spec.class` is found, and
    /// what is found.
    async fn by_class(&self, cx: &mut IndexContext<EphemeralVolumeClaim>) -> IndexResult<ByClass> {
        debug!("by_class was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Says by which keys of `mirror` an EphemeralVolumeClaim is found, and what is found.
    async fn mirror(&self, cx: &mut IndexContext<EphemeralVolumeClaim>) -> IndexResult<Mirror> {
        debug!("mirror was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Whether the new `spec.extra.any.depth` is one for `extra_changed`.
    fn is_wanted(&self, _value: Option<&Value>) -> bool {
        true
    }

    /// Whether `spec.ttlSeconds` is one for `new_ttl`.
    /// Whether the new `spec.ttlSeconds` is one for `check_growth`.
    fn is_long(&self, _value: Option<&i32>) -> bool {
        true
    }

    /// Whether the label `size` is one for `filtered`.
    fn is_size(&self, _value: Option<&str>) -> bool {
        true
    }

    /// Whether an EphemeralVolumeClaim is one for `filtered`.
    /// Whether an EphemeralVolumeClaim is one for `beat`.
    /// Whether an EphemeralVolumeClaim is one for `mirror`.
    fn is_due(&self, _object: &EphemeralVolumeClaim) -> bool {
        true
    }

    /// Whether `spec.size` is one for `settle`.
    fn is_size_known(&self, _value: Option<&Quantity>) -> bool {
        true
    }

    /// How long `settle` waits before it begins with an EphemeralVolumeClaim.
    /// How long `follow_spec_class` waits before it begins with an EphemeralVolumeClaim.
    /// How long `follow_spec_mounts` waits before it begins with an EphemeralVolumeClaim.
    fn patience(&self, _object: &EphemeralVolumeClaim) -> Duration {
        Duration::ZERO
    }

    /// Says whether an EphemeralVolumeClaim may be created or changed.
    async fn check_size(&self, cx: &mut ValidationContext<EphemeralVolumeClaim>) -> AdmissionResult {
        info!("check_size was called: {}", cx.operation());
        Ok(())
    }

    /// Says whether the `status` of an EphemeralVolumeClaim may be stored.
    async fn check_status(&self, cx: &mut ValidationContext<EphemeralVolumeClaim>) -> AdmissionResult {
        info!("check_status was called: {}", cx.operation());
        Ok(())
    }

    /// Says whether an EphemeralVolumeClaim or any part of it may be stored.
    async fn anything(&self, cx: &mut ValidationContext<Value>) -> AdmissionResult {
        info!("anything was called: {}", cx.operation());
        Ok(())
    }

    /// May change an EphemeralVolumeClaim before it is created.
    async fn default_class(&self, cx: &mut MutationContext<EphemeralVolumeClaim>) -> AdmissionResult {
        info!("default_class was called: {}", cx.operation());
        Ok(())
    }

    /// May change an EphemeralVolumeClaim before it is stored.
    async fn check_growth(&self, cx: &mut MutationContext<EphemeralVolumeClaim>) -> AdmissionResult {
        info!("check_growth was called: {}", cx.operation());
        Ok(())
    }

    /// Whether what is asked about is one for `anything`.
    fn is_any_due(&self, _object: &Value) -> bool {
        true
    }
}
