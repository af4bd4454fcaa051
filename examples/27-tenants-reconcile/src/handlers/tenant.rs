//! Handlers for Tenant objects.

use kopf_runtime::prelude::*;
use kopf_runtime::readiness::Readiness;

use super::Operator;
use crate::generated::tenant::{NatsExample, Tenant, TenantHandlers, TenantReconcile};
use crate::generated::types::nats_example::v1::ConditionStatus;

impl TenantHandlers for Operator {
    /// Called when a Tenant is created.
    async fn upload_blob(&self, cx: &mut ChangeContext<Tenant>) -> HandlerResult {
        info!("step 1: upload blob!");
        cx.status_mut().blob = Some(format!("blob-of-{}", cx.name()));
        Ok(())
    }

    /// Called when a Tenant is created, changed or found at the start, and when its NatsExample is
    /// changed or gone.
    async fn reconcile(&self, cx: &mut TenantReconcile) -> HandlerResult {
        let mut nats = NatsExample::default();
        nats.spec.blob = cx.object().status.as_ref().and_then(|it| it.blob.clone());
        let url = url_of(&cx.apply(nats).await?);
        cx.set_ready_condition(&match &url {
            Some(url) => Readiness::ready("Connected", format!("nats is at {url}")),
            None => Readiness::waiting("WaitsForNats", "nats is not ready"),
        });
        cx.status_mut().nats = url;
        Ok(())
    }
}

/// Where clients connect, if the other operator says that the server is ready in this state.
fn url_of(nats: &NatsExample) -> Option<String> {
    let status = nats.status.as_ref()?;
    let is_ready = status.conditions.iter().flatten().any(|condition| {
        condition.r#type == "Ready"
            && condition.status == ConditionStatus::True
            // A condition of an older state says nothing about this one.
            && condition.observed_generation == nats.metadata.generation
    });
    status.url.clone().filter(|_| is_ready)
}
