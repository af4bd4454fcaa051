//! Index functions for Pod objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::pod::{ByLabel, IsRunning, Pod, PodHandlers};

impl PodHandlers for Operator {
    /// Returns the keys and values of a Pod in the index `is_running`.
    async fn is_running(&self, cx: &mut IndexContext<Pod>) -> IndexResult<IsRunning> {
        let status = cx.object().status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        let namespace = cx.namespace().unwrap_or_default();
        let key = (namespace.to_owned(), cx.name().to_owned());
        Ok(vec![(key, phase == Some("Running"))])
    }

    /// Returns the keys and values of a Pod in the index `by_label`.
    async fn by_label(&self, cx: &mut IndexContext<Pod>) -> IndexResult<ByLabel> {
        let labels = cx.object().labels().clone().into_iter();
        Ok(labels.map(|label| (label, cx.name().to_owned())).collect())
    }
}
