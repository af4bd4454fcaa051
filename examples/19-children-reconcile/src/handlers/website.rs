//! Handlers for Website objects.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::website::{Website, WebsiteHandlers, WebsiteReconcile};

impl WebsiteHandlers for Operator {
    /// Called when a Website is created, changed or found at the start, when its ConfigMap, Service
    /// or Deployment is changed or gone, and when a Secret that it uses changes.
    async fn reconcile(&self, cx: &mut WebsiteReconcile) -> HandlerResult {
        let password = password_version(cx).await?;
        let site = cx.object();
        cx.apply(page_of(site)).await?;
        // A Service that is no longer applied is deleted.
        if site.spec.exposed {
            cx.apply(service_of(site)?).await?;
        }
        let deployment = cx.apply(deployment_of(site, &password)?).await?;
        cx.set_ready_condition(&readiness::of(&deployment));
        Ok(())
    }
}

/// The version of the Secret, so that the Pods start again when it changes.
async fn password_version(cx: &WebsiteReconcile) -> HandlerResult<String> {
    let Some(name) = &cx.object().spec.secret_name else {
        return Ok("none".to_owned());
    };
    let secret = cx.api::<Secret>().get_metadata_opt(name).await?;
    let version = secret.and_then(|secret| secret.resource_version());
    Ok(version.unwrap_or_else(|| "missing".to_owned()))
}

fn page_of(site: &Website) -> ConfigMap {
    ConfigMap {
        data: Some([("index.html".to_owned(), site.spec.page.clone())].into()),
        ..ConfigMap::default()
    }
}

fn service_of(site: &Website) -> HandlerResult<Service> {
    let service = json!({
        "metadata": {},
        "spec": {"selector": pod_labels(site), "ports": [{"port": 80, "targetPort": 8080}]},
    });
    Ok(serde_json::from_value(service)?)
}

/// The Deployment, without `replicas`: an autoscaler, or you, may set them.
fn deployment_of(site: &Website, password: &str) -> HandlerResult<Deployment> {
    let labels = pod_labels(site);
    let page = json!({"name": "page", "configMap": {"name": site.name_any()}});
    let server = json!({
        "name": "server",
        "image": "busybox",
        "command": ["httpd", "-f", "-p", "8080", "-h", "/www"],
        "volumeMounts": [{"name": "page", "mountPath": "/www"}],
    });
    let deployment = json!({
        "metadata": {},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"password-version": password}},
                "spec": {"containers": [server], "volumes": [page]},
            },
        },
    });
    Ok(serde_json::from_value(deployment)?)
}

fn pod_labels(site: &Website) -> BTreeMap<String, String> {
    [("website".to_owned(), site.name_any())].into()
}
