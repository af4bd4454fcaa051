//! Handlers for EphemeralVolumeClaim objects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::ephemeral_volume_claim::{
    EphemeralVolumeClaim, EphemeralVolumeClaimHandlers, Quantity,
};

impl EphemeralVolumeClaimHandlers for Operator {
    /// Called when an EphemeralVolumeClaim is created.
    async fn create_fn(
        &self,
        cx: &mut ChangeContext<EphemeralVolumeClaim>,
    ) -> HandlerResult<Value> {
        let pvc = keep_claim(cx).await?;
        info!("PVC child is created: {}", pvc.name_any());
        Ok(json!({"pvc-name": pvc.name_any()}))
    }

    /// Called when `spec.size` of an EphemeralVolumeClaim is changed by an update.
    async fn resize(&self, cx: &mut FieldContext<EphemeralVolumeClaim, Quantity>) -> HandlerResult {
        let pvc = keep_claim(cx).await?;
        info!("PVC child is resized: {}", pvc.name_any());
        Ok(())
    }

    /// Called when `metadata.labels` of an EphemeralVolumeClaim is changed by an update.
    async fn relabel(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, BTreeMap<String, String>>,
    ) -> HandlerResult {
        keep_claim(cx).await?;
        info!("PVC child is relabelled: {}", cx.diff());
        Ok(())
    }
}

/// Applies the claim of an object: its name, labels and owner are those of the object.
async fn keep_claim(
    cx: &impl ObjectContext<EphemeralVolumeClaim>,
) -> HandlerResult<PersistentVolumeClaim> {
    let mut pvc = PersistentVolumeClaim::default();
    let spec = pvc.spec.get_or_insert_default();
    spec.access_modes = Some(vec!["ReadWriteOnce".into()]);
    spec.storage_class_name = Some("standard".into());
    let requests = &mut spec.resources.get_or_insert_default().requests;
    *requests = Some([("storage".into(), cx.object().spec.size.clone().into())].into());
    cx.apply(pvc).await
}
