//! Handlers for KopfExample objects.

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult<Value> {
        let spec = &cx.object().spec;
        let duration = spec.duration.as_deref().unwrap_or("0");
        let field = EnvVar {
            name: "FIELD".into(),
            value: spec.field.clone(),
            ..EnvVar::default()
        };
        let mut pod = Pod::default();
        pod.spec.get_or_insert_default().containers = vec![Container {
            name: "the-only-one".into(),
            image: Some("busybox".into()),
            command: Some(["sh", "-x", "-c"].map(Into::into).into()),
            args: Some(vec![format!("echo FIELD=$FIELD; sleep {duration}")]),
            env: Some(vec![field]),
            ..Container::default()
        }];
        // The Pod gets the name, the namespace and the labels of the object, and an owner reference to
        // it.
        let pod = cx.apply(pod).await?;
        info!("created the Pod {}", pod.name_any());
        Ok(json!({"children": [pod.uid()]}))
    }
}
