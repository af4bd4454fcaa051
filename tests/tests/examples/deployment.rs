//! The Deployments of the examples: accepted by the API server, with probes on the health endpoint.

use std::path::Path;

use kopf_runtime::HealthEndpoint;
use kopf_tests::{Sandbox, TestFailure, TestResult};
use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// The Deployment of every example, by the example's name.
fn deployments() -> Result<Vec<(String, Value)>, TestFailure> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.path().join("deploy/base/deployment.yaml");
        let text = std::fs::read_to_string(&file)?;
        let documents = serde_saphyr::from_multiple::<Value>(&text)?;
        let deployment = documents.into_iter().find(|it| it["kind"] == "Deployment");
        let name = entry.file_name().to_string_lossy().into_owned();
        let deployment =
            deployment.ok_or_else(|| TestFailure::new(format!("{name} has no Deployment")))?;
        found.push((name, deployment));
    }
    Ok(found)
}

/// The objects of the files that a Kustomization and its bases list.
fn kustomized(folder: &Path) -> Result<Vec<Value>, TestFailure> {
    let file = folder.join("kustomization.yaml");
    let lists = serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(file)?)?;
    let entries = lists.iter().flat_map(|list| list["resources"].as_array());
    let mut objects = Vec::new();
    for entry in entries.flatten().filter_map(Value::as_str) {
        let path = folder.join(entry);
        objects.extend(if path.is_dir() {
            kustomized(&path)?
        } else {
            serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(&path)?)?
        });
    }
    Ok(objects)
}

#[test]
fn the_kustomizations_list_each_definition_once() -> TestResult {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"));
    for entry in std::fs::read_dir(examples)? {
        let example = entry?.path();
        let is_definition = |it: &&Value| it["kind"] == "CustomResourceDefinition";
        let name = |it: &Value| it["metadata"]["name"].to_string();
        let objects = kustomized(&example.join("deploy"))?;
        let mut listed: Vec<String> = objects.iter().filter(is_definition).map(name).collect();
        // The peering is not a kind of the operator.
        listed.retain(|name| !name.contains("kopfpeerings.kopf.dev"));
        listed.sort();
        let mut own: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(example.join("crds"))
            .into_iter()
            .flatten()
        {
            let text = std::fs::read_to_string(entry?.path())?;
            let documents = serde_saphyr::from_multiple::<Value>(&text)?;
            own.extend(documents.iter().filter(is_definition).map(name));
        }
        own.sort();
        assert_eq!(listed, own, "{}", example.display());
        assert!(objects.iter().any(|it| it["kind"] == "Deployment"));
    }
    Ok(())
}

#[test]
fn probes_use_the_address_of_the_health_endpoint() -> TestResult {
    for (name, deployment) in deployments()? {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"].as_array().cloned().unwrap_or_default();
        let address = arguments
            .iter()
            .find_map(|it| it.as_str()?.strip_prefix("--liveness="))
            .ok_or_else(|| TestFailure::new(format!("{name} has no health endpoint")))?;
        let endpoint: HealthEndpoint = address.parse()?;
        let port = &container["ports"][0];
        assert_eq!(port["name"], "health", "{name}");
        let served = format!(
            "http://0.0.0.0:{}{}",
            port["containerPort"],
            endpoint.path()
        );
        assert_eq!(endpoint.to_string(), served, "{name}");
        for (probe, path) in [
            ("livenessProbe", endpoint.path()),
            ("readinessProbe", "/readyz"),
        ] {
            let expected = json!({"path": path, "port": "health"});
            assert_eq!(container[probe]["httpGet"], expected, "{name}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_api_server_accepts_every_deployment_with_strict_validation() -> TestResult {
    let sandbox = Sandbox::open("deployments").await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    let api: Api<DynamicObject> =
        Api::namespaced_with(sandbox.client(), sandbox.namespace(), &kind);
    let params = PatchParams {
        dry_run: true,
        field_manager: Some("test".to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    for (name, mut deployment) in deployments()? {
        deployment["metadata"]["namespace"] = json!(sandbox.namespace());
        let named = deployment["metadata"]["name"].as_str().unwrap_or_default();
        let applied = api.patch(named, &params, &Patch::Apply(&deployment)).await;
        applied.map_err(|error| TestFailure::new(format!("{name}: {error}")))?;
    }
    Ok(())
}
