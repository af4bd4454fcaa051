//! The RBAC and webhook manifests that the generator makes, and their single permissions.

use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::model::webhook_configuration::configurations;
use kopf_gen::pipeline;
use kopf_gen::plan::{DeploySource, FileSource};
use kopf_tests::permission::{Permission, permissions_of, remove_from};
use kopf_tests::{TestFailure, User};
use serde_json::Value;

/// The manifests that the generator makes.
pub(crate) struct GeneratedManifests {
    pub(crate) rbac: Vec<Value>,
    pub(crate) webhooks: Vec<Value>,
}

// === impl GeneratedManifests ===

impl GeneratedManifests {
    /// Generates from a manifest whose only kind has this definition.
    pub(crate) fn new(manifest: String, definition: &str) -> Result<Self, TestFailure> {
        let (mut sources, mut diagnostics) = (Sources::new(), Diagnostics::new());
        let source = sources.add("kopf.yaml", manifest);
        let read = |_: &str| Ok(definition.as_bytes().to_vec());
        let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics);
        let operator = operator.ok_or_else(|| TestFailure::new(format!("{diagnostics:?}")))?;
        let documents = |text: String| serde_saphyr::from_multiple::<Value>(&text);
        let rbac = DeploySource::Rbac(&operator);
        let webhooks = DeploySource::Webhooks {
            operator: &operator,
            configurations: configurations(&operator)?,
        };
        let made = |source| documents(pipeline::text(FileSource::Deploy(source)));
        Ok(Self {
            rbac: made(rbac)?,
            webhooks: match operator.has_webhooks() {
                true => made(webhooks)?,
                false => Vec::new(),
            },
        })
    }

    /// The account of an operator of this name.
    pub(crate) fn account(operator: &str) -> User {
        User::new(format!("system:serviceaccount:{operator}:{operator}"))
    }

    /// All permissions, one verb on one resource each.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        self.rbac.iter().flat_map(permissions_of).collect()
    }

    /// The same roles without one permission.
    pub(crate) fn rbac_without(&self, missing: &Permission) -> Vec<Value> {
        let mut rbac = self.rbac.clone();
        for role in &mut rbac {
            remove_from(role, missing);
        }
        rbac
    }
}
