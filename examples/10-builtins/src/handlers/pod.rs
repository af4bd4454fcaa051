//! Handlers for Pod objects.

use kopf_runtime::prelude::*;
use kube::api::DeleteParams;

use super::Operator;
use crate::generated::pod::{Pod, PodHandlers};

impl PodHandlers for Operator {
    /// Called when a Pod is created or already exists when the operator starts.
    async fn pod_in_sight(&self, cx: &mut ChangeContext<Pod>) -> HandlerResult {
        let life = std::env::var("POD_LIFE_SECONDS").map_or(Ok(30), |seconds| seconds.parse())?;
        let left = Duration::from_secs(life).saturating_sub(cx.runtime());
        if !left.is_zero() {
            let message = format!("Pod killing happens in {}s.", left.as_secs_f32().round());
            return Err(HandlerError::temporary_after(left, message));
        }
        info!("=== Pod killing happens NOW!");
        let pods = cx.api::<Pod>();
        pods.delete(cx.name(), &DeleteParams::default()).await?;
        Ok(())
    }

    /// Whether the filter of `pod_in_sight` accepts a Pod: Pods that run the cluster are spared.
    fn is_mortal(&self, cx: &FilterContext<Pod>) -> bool {
        !cx.namespace().is_some_and(|it| it.starts_with("kube-"))
    }
}
