//! Handlers for SimpleDeployment objects.

use k8s_openapi::api::core::v1::{Container, Pod};
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::simple_deployment::{SimpleDeployment, SimpleDeploymentHandlers};

impl SimpleDeploymentHandlers for Operator {
    /// Called when a SimpleDeployment is created.
    async fn create_function(
        &self,
        cx: &mut ChangeContext<SimpleDeployment>,
    ) -> HandlerResult<Value> {
        let sleepytime = cx.raw()["spec"]["sleepytime"].as_str().unwrap_or("0");
        let sleepytime: u32 = sleepytime
            .parse()
            .map_err(|error| HandlerError::permanent("sleepytime is no number").because(error))?;
        let mut pod = Pod::default();
        pod.spec.get_or_insert_default().containers = vec![Container {
            name: "simple".into(),
            image: Some("busybox".into()),
            command: Some(["sh", "-x", "-c"].map(Into::into).into()),
            args: Some(vec![format!(
                "echo \"I'm so very useful!\"\nsleep {sleepytime}"
            )]),
            ..Container::default()
        }];
        let pod = cx.apply(pod).await?;
        // The printed column.
        cx.patch().set("status.child", pod.name_any());
        Ok(json!({"children": [pod.uid()]}))
    }
}
