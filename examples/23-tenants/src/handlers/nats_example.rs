//! Handlers for NatsExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::nats_example::{NatsExample, NatsExampleHandlers, NatsUrls};

impl NatsExampleHandlers for Operator {
    /// Returns the keys and values of a NatsExample in the index `nats_urls`.
    async fn nats_urls(&self, cx: &mut IndexContext<NatsExample>) -> IndexResult<NatsUrls> {
        let nats = cx.object();
        let conditions = cx.raw()["status"]["conditions"].as_array();
        let is_ready = conditions.into_iter().flatten().any(|condition| {
            // A condition of an older state says nothing about this one.
            condition["type"] == "Ready"
                && condition["status"] == "True"
                && condition["observedGeneration"].as_i64() == nats.metadata.generation
        });
        let url = nats.status.as_ref().and_then(|status| status.url.clone());
        let url = url.filter(|_| is_ready);
        let tenants = nats.owner_references().iter().map(|it| it.uid.clone());
        Ok(url
            .map(|url| tenants.map(|it| (it, url.clone())).collect())
            .unwrap_or_default())
    }
}
