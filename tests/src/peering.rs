//! Peering objects for tests: the definitions that Kopf ships, and the records in the objects.

use std::collections::BTreeMap;

use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::sandbox::{Objects, Sandbox, eventually};
use crate::test_failure::TestFailure;

/// The API group of peerings.
pub const GROUP: &str = "kopf.dev";

/// The API group of old versions of Kopf.
pub const LEGACY_GROUP: &str = "zalando.org";

/// A peering object, in the namespace of a sandbox or cluster-wide.
#[derive(Clone)]
pub struct PeeringObject {
    objects: Objects,
    name: String,
}

impl PeeringObject {
    /// Creates a peering in the namespace of the sandbox.
    pub async fn create(sandbox: &Sandbox, name: &str) -> Result<Self, TestFailure> {
        Self::create_in(sandbox, GROUP, "KopfPeering", name).await
    }

    /// Creates a cluster-wide peering, under a name that no other sandbox uses.
    pub async fn create_cluster_wide(sandbox: &Sandbox) -> Result<Self, TestFailure> {
        Self::create_in(sandbox, GROUP, "ClusterKopfPeering", sandbox.namespace()).await
    }

    /// Creates a peering of any group and kind.
    pub async fn create_in(
        sandbox: &Sandbox,
        group: &str,
        kind: &str,
        name: &str,
    ) -> Result<Self, TestFailure> {
        let api_version = format!("{group}/v1");
        let objects = match sandbox.objects(&api_version, kind).await {
            Ok(objects) => objects,
            Err(_) => {
                define(sandbox, group).await?;
                sandbox.objects(&api_version, kind).await?
            }
        };
        objects.create(name, json!({})).await?;
        Ok(Self {
            objects,
            name: name.to_owned(),
        })
    }

    /// The peering in the namespace of the sandbox, which an operator created.
    pub async fn existing(sandbox: &Sandbox, name: &str) -> Result<Self, TestFailure> {
        let objects = sandbox
            .objects(&format!("{GROUP}/v1"), "KopfPeering")
            .await?;
        objects.get(name).await?;
        Ok(Self {
            objects,
            name: name.to_owned(),
        })
    }

    /// Creates a peering of the same name in another namespace.
    pub async fn create_beside(&self, namespace: &str) -> Result<(), TestFailure> {
        let client = self.objects.api().clone().into_client();
        let api: Api<DynamicObject> =
            Api::namespaced_with(client, namespace, self.objects.resource());
        let object = DynamicObject::new(&self.name, self.objects.resource());
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The records in the object, by the identity of the operator.
    pub async fn records(&self) -> Result<BTreeMap<String, Value>, TestFailure> {
        let object = self.objects.get(&self.name).await?;
        let records = object.data["status"].as_object();
        Ok(records
            .into_iter()
            .flatten()
            .map(|(identity, record)| (identity.clone(), record.clone()))
            .collect())
    }

    /// Writes records; null removes one.
    pub async fn write(&self, records: Value) -> Result<(), TestFailure> {
        let patch = json!({"status": records});
        self.objects.merge(&self.name, patch).await?;
        Ok(())
    }

    /// Waits until the records are those of exactly these operators.
    pub async fn wait_for(&self, identities: &[&str]) -> Result<(), TestFailure> {
        eventually(&format!("the peers are {identities:?}"), async || {
            let records = self.records().await.ok()?;
            records.keys().eq(identities.iter()).then_some(())
        })
        .await
    }
}

/// Defines the peering kinds as Kopf's own manifest does.
pub async fn define(sandbox: &Sandbox, group: &str) -> Result<(), TestFailure> {
    define_as(sandbox, group, "").await
}

/// Defines the peering kinds with a status subresource.
pub async fn define_with_status_subresource(sandbox: &Sandbox) -> Result<(), TestFailure> {
    define_as(sandbox, GROUP, "subresources: {status: {}}").await
}

async fn define_as(sandbox: &Sandbox, group: &str, subresources: &str) -> Result<(), TestFailure> {
    for (kind, scope) in [
        ("ClusterKopfPeering", "Cluster"),
        ("KopfPeering", "Namespaced"),
    ] {
        let singular = kind.to_lowercase();
        let definition = format!(
            "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {singular}s.{group}
spec:
  scope: {scope}
  group: {group}
  names:
    kind: {kind}
    plural: {singular}s
    singular: {singular}
  versions:
    - name: v1
      served: true
      storage: true
      {subresources}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            status:
              type: object
              x-kubernetes-preserve-unknown-fields: true
"
        );
        sandbox.apply_shared(&definition).await?;
    }
    Ok(())
}
