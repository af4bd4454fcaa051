//! Handlers for Pod objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::pod::{Pod, PodHandlers, Pods};

impl PodHandlers for Operator {
    /// Returns the keys and values of a Pod in the index `pods`.
    async fn pods(&self, cx: &mut IndexContext<Pod>) -> IndexResult<Pods> {
        let pod = cx.object();
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        let namespace = cx.namespace().unwrap_or_default().to_owned();
        let value = (pod.labels().clone(), phase.unwrap_or_default());
        Ok(vec![(namespace, value)])
    }
}
