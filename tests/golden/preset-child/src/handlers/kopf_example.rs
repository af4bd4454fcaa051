//! Handlers for KopfExample objects.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::prelude::*;
use kube::api::{Patch, PatchParams};

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created, is changed or already exists when the operator starts.
    async fn sync_child(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        let name = format!("kopfexample-{}", cx.name());
        let mut child: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": name},
            "data": {"spec.json": serde_json::to_string(&cx.object().spec)?},
        }))?;

        // The child gets the namespace and the labels of the object, and an owner reference, so that
        // Kubernetes deletes it together with the object.
        cx.adopt(&mut child)?;
        let children = cx.api::<ConfigMap>();
        let apply = PatchParams::apply(env!("CARGO_PKG_NAME")).force();
        let patch = Patch::Apply(child);
        let child = children.patch(&name, &apply, &patch).await?;
        info!("the child {} is up to date", child.name_any());
        cx.set_result(&json!({"child": child.name_any()}))?;
        Ok(())
    }
}
