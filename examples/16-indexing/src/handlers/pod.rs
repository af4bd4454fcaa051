//! By what a Pod is found.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::pod::{ByLabel, IsRunning, Pod, PodHandlers};

impl PodHandlers for Operator {
    /// Says by which keys of `is_running` a Pod is found, and what is found.
    async fn is_running(&self, cx: &mut IndexContext<Pod>) -> IndexResult<IsRunning> {
        let status = cx.object().status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        let key = (
            cx.namespace().unwrap_or_default().to_owned(),
            cx.name().to_owned(),
        );
        Ok(vec![(key, phase == Some("Running"))])
    }

    /// Says by which keys of `by_label` a Pod is found, and what is found.
    async fn by_label(&self, cx: &mut IndexContext<Pod>) -> IndexResult<ByLabel> {
        let labels = cx.object().labels().iter();
        let entries = labels.map(|(label, value)| {
            let key = (label.clone(), value.clone());
            (key, cx.name().to_owned())
        });
        Ok(entries.collect())
    }
}
