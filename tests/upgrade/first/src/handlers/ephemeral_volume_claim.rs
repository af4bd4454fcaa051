//! What happens to an EphemeralVolumeClaim.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kopf_runtime::prelude::*;
use kube::api::{Patch, PatchParams};

use super::Operator;
use crate::generated::ephemeral_volume_claim::{
    BTreeMap, EphemeralVolumeClaim, EphemeralVolumeClaimHandlers, Quantity,
};

impl EphemeralVolumeClaimHandlers for Operator {
    /// Called when an EphemeralVolumeClaim is created.
    async fn create_fn(&self, cx: &mut Change<EphemeralVolumeClaim>) -> HandlerResult {
        let mut pvc: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": cx.name()},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "standard",
                "resources": {"requests": {"storage": cx.object().spec.size}},
            },
        }))?;
        cx.adopt(&mut pvc)?;
        let pvcs = cx.api::<PersistentVolumeClaim>();
        let apply = PatchParams::apply("evc-operator").force();
        let pvc = pvcs.patch(cx.name(), &apply, &Patch::Apply(pvc)).await?;
        info!("PVC child is created: {}", pvc.name_any());
        cx.set_result(&json!({"pvc-name": pvc.name_any()}))?;
        Ok(())
    }

    /// Called when `spec.size` of an EphemeralVolumeClaim is changed by an update.
    async fn resize(&self, cx: &mut FieldChange<EphemeralVolumeClaim, Quantity>) -> HandlerResult {
        let requests = json!({"storage": cx.new_value()});
        let patch = Patch::Merge(json!({"spec": {"resources": {"requests": requests}}}));
        let pvcs = cx.api::<PersistentVolumeClaim>();
        pvcs.patch(cx.name(), &PatchParams::default(), &patch)
            .await?;
        info!("PVC child is resized: {requests}");
        Ok(())
    }

    /// Called when `metadata.labels` of an EphemeralVolumeClaim is changed by an update.
    async fn relabel(
        &self,
        cx: &mut FieldChange<EphemeralVolumeClaim, BTreeMap<String, String>>,
    ) -> HandlerResult {
        let labels = cx.diff().merge_patch();
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let pvcs = cx.api::<PersistentVolumeClaim>();
        pvcs.patch(cx.name(), &PatchParams::default(), &patch)
            .await?;
        info!("PVC child is relabelled: {labels}");
        Ok(())
    }
}
