//! Handlers for KopfExample objects.

use k8s_openapi::api::core::v1::Pod;
use kopf_runtime::prelude::*;
use kube::api::PostParams;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        let spec = &cx.object().spec;
        let duration = spec.duration.as_deref().unwrap_or("0");
        let mut pod: Pod = serde_json::from_value(json!({
            "spec": {
                "containers": [{
                    "name": "the-only-one",
                    "image": "busybox",
                    "command": ["sh", "-x", "-c"],
                    "args": [format!("echo FIELD=$FIELD; sleep {duration}")],
                    "env": [{"name": "FIELD", "value": spec.field}],
                }],
            },
        }))?;

        // The Pod gets the namespace and the labels of the object, an owner reference to it, and a name
        // that starts with its name.
        cx.adopt(&mut pod)?;
        let pod = cx.api().create(&PostParams::default(), &pod).await?;

        info!("created the Pod {}", pod.name_any());
        cx.set_result(&json!({"children": [pod.uid()]}))?;
        Ok(())
    }
}
