//! Handlers for NatsExample objects.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, Service, ServicePort};
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::nats_example::{NatsExample, NatsExampleHandlers, NatsExampleReconcile};

const PORT: i32 = 4222;

impl NatsExampleHandlers for Operator {
    /// Called when a NatsExample is created, changed or found at the start, and when its Service
    /// or Deployment is changed or gone.
    async fn serve(&self, cx: &mut NatsExampleReconcile) -> HandlerResult {
        let deployment = cx.apply(deployment(cx.name(), cx.object())).await?;
        let service = cx.apply(service(cx.name())).await?;
        let namespace = cx.namespace().unwrap_or_default();
        let url = format!("nats://{}.{namespace}:{PORT}", service.name_any());
        cx.status_mut().url = Some(url);
        cx.set_ready_condition(&readiness::of(&deployment));
        Ok(())
    }
}

/// The label by which the Service finds the Pods.
fn app(name: &str) -> std::collections::BTreeMap<String, String> {
    [("app".to_owned(), format!("nats-{name}"))].into()
}

fn deployment(name: &str, nats: &NatsExample) -> Deployment {
    let mut deployment = Deployment::default();
    let spec = &mut deployment.spec;
    spec.selector.match_labels = Some(app(name));
    let template = &mut spec.template;
    template.metadata.get_or_insert_default().labels = Some(app(name));
    let arguments = ["--jetstream", "--store_dir"].map(str::to_owned);
    let store = nats.spec.blob.iter().map(|blob| format!("/blobs/{blob}"));
    template.spec.get_or_insert_default().containers = vec![Container {
        name: "nats".into(),
        image: Some("nats:2".into()),
        args: nats
            .spec
            .blob
            .as_ref()
            .map(|_| arguments.into_iter().chain(store).collect()),
        ..Container::default()
    }];
    deployment
}

fn service(name: &str) -> Service {
    let mut service = Service::default();
    let spec = service.spec.get_or_insert_default();
    spec.selector = Some(app(name));
    spec.ports = Some(vec![ServicePort {
        name: Some("client".into()),
        port: PORT,
        ..ServicePort::default()
    }]);
    service
}
