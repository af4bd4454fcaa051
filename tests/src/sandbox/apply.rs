//! Applies one object, and waits until a CustomResourceDefinition is served.

use std::sync::Arc;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::Value;

use super::{Objects, SandboxState, eventually, lock};
use crate::test_failure::TestFailure;

/// The field manager of applied objects.
const FIELD_MANAGER: &str = "kopf-tests";

/// The lifetime of an applied CustomResourceDefinition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DefinitionLifetime {
    /// Deleted with the sandbox.
    Sandbox,
    /// Kept as long as the control plane runs.
    ControlPlane,
}

/// Applies an object, and waits until it is served if it is a CustomResourceDefinition.
pub(super) async fn apply_one(
    state: &Arc<SandboxState>,
    object: DynamicObject,
    lifetime: DefinitionLifetime,
) -> Result<DynamicObject, TestFailure> {
    let nameless =
        || TestFailure::new("an applied object needs apiVersion, kind and metadata.name");
    let types = object.types.clone().ok_or_else(nameless)?;
    let name = object.metadata.name.clone().ok_or_else(nameless)?;
    let gvk = GroupVersionKind::try_from(&types)?;
    let (resource, capabilities) = discovery::pinned_kind(&state.client, &gvk).await?;
    let namespace = match capabilities.scope {
        Scope::Cluster => None,
        Scope::Namespaced => Some(
            object
                .metadata
                .namespace
                .clone()
                .unwrap_or_else(|| state.namespace.clone()),
        ),
    };
    let objects = Objects::new(Arc::clone(state), resource, namespace);
    let is_definition = gvk.kind == "CustomResourceDefinition";
    if is_definition && lifetime == DefinitionLifetime::Sandbox {
        lock(&state.definitions).insert(name.clone());
    }
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let patch = Patch::Apply(&object);
    let applied = match objects.api().patch(&name, &params, &patch).await {
        // Another process has just created it.
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            objects.api().patch(&name, &params, &patch).await?
        }
        applied => applied?,
    };
    if is_definition {
        let established = objects
            .wait_until(&name, "it is established", is_established)
            .await?;
        until_served(state, &established.data).await?;
        return Ok(established);
    }
    Ok(applied)
}

fn is_established(definition: &DynamicObject) -> bool {
    definition.data["status"]["conditions"]
        .as_array()
        .is_some_and(|conditions| {
            conditions
                .iter()
                .any(|it| it["type"] == "Established" && it["status"] == "True")
        })
}

/// Waits until discovery has every served version and its objects can be listed, a moment after
/// the definition is established.
async fn until_served(state: &SandboxState, definition: &Value) -> Result<(), TestFailure> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    for version in spec["versions"].as_array().into_iter().flatten() {
        if version["served"] != true {
            continue;
        }
        let gvk = GroupVersionKind::gvk(&group, &text(&version["name"]), &kind);
        eventually("an established definition is served", async || {
            list_one(state, &gvk).await.ok()
        })
        .await?;
    }
    Ok(())
}

async fn list_one(state: &SandboxState, gvk: &GroupVersionKind) -> kube::Result<()> {
    let (resource, _) = discovery::pinned_kind(&state.client, gvk).await?;
    let all: Api<DynamicObject> = Api::all_with(state.client.clone(), &resource);
    all.list(&ListParams::default().limit(1)).await.map(drop)
}
