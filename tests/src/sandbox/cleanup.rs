//! Deletes a sandbox's namespace, definitions and files, also when its test panics.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use std::{fs, io, thread};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use tokio::time::timeout;

use super::{SandboxState, lock};
use crate::control_plane::ControlPlane;
use crate::test_failure::TestFailure;
use crate::user::User;

/// Short, because the test may have broken the control plane.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

impl Drop for SandboxState {
    fn drop(&mut self) {
        if !self.plane.outlives_its_test() {
            return;
        }
        let definitions = std::mem::take(&mut *lock(&self.definitions));
        let (plane, user, namespace) = (
            self.plane.clone(),
            self.user.clone(),
            self.namespace.clone(),
        );
        // The runtime of the test is busy with this very drop, and may be ending.
        let cleaning = thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            // On an error, the rest is removed with the control plane.
            let _ = runtime.block_on(async {
                timeout(
                    CLEANUP_TIMEOUT,
                    clean(&plane, &user, &namespace, &definitions),
                )
                .await
            });
        });
        let _ = cleaning.join();
        // Last, because the cleaning itself needs a kubeconfig.
        let _ = remove_files_of(&self.namespace, &self.plane.scratch());
    }
}

fn remove_files_of(namespace: &str, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains(namespace) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

async fn clean(
    plane: &ControlPlane,
    user: &User,
    namespace: &str,
    definitions: &BTreeSet<String>,
) -> Result<(), TestFailure> {
    // The client of the test belongs to a runtime that may have ended.
    let client = plane.client(user).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .delete(namespace, &DeleteParams::background())
        .await?;
    for definition in definitions {
        remove_definition(&client, definition).await?;
    }
    Ok(())
}

/// Deletes a definition and its objects, and removes the finalizers of those.
async fn remove_definition(client: &Client, name: &str) -> kube::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = definitions.get(name).await?;
    definitions
        .delete(name, &DeleteParams::background())
        .await?;
    let (names, group) = (&definition.spec.names, &definition.spec.group);
    for version in definition
        .spec
        .versions
        .iter()
        .filter(|version| version.storage)
    {
        let gvk = GroupVersionKind::gvk(group, &version.name, &names.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &names.plural);
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in objects.list(&ListParams::default()).await? {
            let held = object.metadata.finalizers.is_some_and(|it| !it.is_empty());
            let (Some(name), true) = (object.metadata.name, held) else {
                continue;
            };
            let objects: Api<DynamicObject> = match &object.metadata.namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => objects.clone(),
            };
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            objects
                .patch(&name, &PatchParams::default(), &patch)
                .await?;
        }
    }
    Ok(())
}
