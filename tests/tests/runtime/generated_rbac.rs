//! The RBAC and webhook manifests that the generator makes, and their single permissions.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::model::webhook_configuration::configurations;
use kopf_gen::pipeline;
use kopf_gen::plan::{DeploySource, FileSource};
use kopf_tests::{Sandbox, TestFailure, TestResult, User, eventually};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

/// The manifests that the generator makes.
pub(crate) struct GeneratedManifests {
    pub(crate) rbac: Vec<Value>,
    pub(crate) webhooks: Vec<Value>,
}

/// One permission: a verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permission {
    pub(crate) namespace: Option<String>,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) verb: String,
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
        self.rbac.iter().flat_map(permissions).collect()
    }

    /// The same roles without one permission.
    pub(crate) fn rbac_without(&self, missing: &Permission) -> Vec<Value> {
        let mut rbac = self.rbac.clone();
        for role in &mut rbac {
            let left = permissions(role).filter(|it| it != missing).map(|it| {
                let mut rule = json!({
                    "apiGroups": [it.group], "resources": [it.resource], "verbs": [it.verb],
                });
                if let Some(name) = it.name {
                    rule["resourceNames"] = json!([name]);
                }
                rule
            });
            if role["rules"].is_array() {
                role["rules"] = left.collect();
            }
        }
        rbac
    }
}

fn permissions(role: &Value) -> impl Iterator<Item = Permission> + use<> {
    let namespace = role["metadata"]["namespace"].as_str().map(str::to_owned);
    let mut found = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let texts = |key: &str| {
            let items = rule[key].as_array().into_iter().flatten();
            let texts = items.filter_map(Value::as_str).map(str::to_owned);
            texts.collect::<Vec<_>>()
        };
        let mut names: Vec<_> = texts("resourceNames").into_iter().map(Some).collect();
        if names.is_empty() {
            names.push(None);
        }
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                for name in &names {
                    found.extend(texts("verbs").into_iter().map(|verb| Permission {
                        namespace: namespace.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb,
                    }));
                }
            }
        }
    }
    found.into_iter()
}

/// Applies roles, and waits until each expected permission of `account` is granted or not.
pub(crate) async fn grant(
    sandbox: &Sandbox,
    account: &User,
    rbac: &[Value],
    expected: &[(Permission, bool)],
) -> TestResult {
    for document in rbac {
        // A client certificate of its name stands in for the service account.
        if document["kind"] != "ServiceAccount" {
            sandbox.apply(&document.to_string()).await?;
        }
    }
    eventually("the permissions are in force", async || {
        for (permission, granted) in expected {
            if permission.is_granted(sandbox, account).await.ok()? != *granted {
                return None;
            }
        }
        Some(())
    })
    .await
}

// === impl Permission ===

impl Permission {
    async fn is_granted(&self, sandbox: &Sandbox, account: &User) -> Result<bool, TestFailure> {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (&*self.resource, None),
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(account.name().to_owned()),
                resource_attributes: Some(ResourceAttributes {
                    namespace: self.namespace.clone(),
                    group: Some(self.group.clone()),
                    resource: Some(resource.to_owned()),
                    subresource,
                    name: self.name.clone(),
                    verb: Some(self.verb.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::all(sandbox.client());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
