//! Handlers for Pod objects.

use kopf_runtime::prelude::*;

use super::Operator;
use super::load_test::RUN_LABEL;
use crate::generated::pod::{Phases, Pod, PodHandlers};

impl PodHandlers for Operator {
    /// Returns the keys and values of a Pod in the index `phases`.
    async fn phases(&self, cx: &mut IndexContext<Pod>) -> IndexResult<Phases> {
        let pod = cx.object();
        let Some(run) = pod.labels().get(RUN_LABEL) else {
            return Ok(Vec::new());
        };
        let owners = pod.owner_references().iter();
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        let phase = phase.unwrap_or_default();
        Ok(owners
            .map(|owner| ((owner.uid.clone(), run.clone()), phase.clone()))
            .collect())
    }
}
