//! Permissions: the verbs on resources that roles grant, one by one.

use std::fmt;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, eventually};
use crate::test_failure::{TestFailure, TestResult};
use crate::user::User;

/// One permission: a verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The namespace of the role; none in a ClusterRole.
    pub namespace: Option<String>,
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural, with the subresource after a slash.
    pub resource: String,
    /// The only object, if the rule names one.
    pub name: Option<String>,
    /// The verb.
    pub verb: String,
}

/// The permissions that a role grants; none if the document is not a role.
#[must_use]
pub fn permissions_of(role: &Value) -> Vec<Permission> {
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
    found
}

/// Takes one permission away from a role; other documents stay as they are.
pub fn remove_from(role: &mut Value, missing: &Permission) {
    if !role["rules"].is_array() {
        return;
    }
    let left = permissions_of(role).into_iter().filter(|it| it != missing);
    let left = left.map(|it| {
        let mut rule = json!({
            "apiGroups": [it.group], "resources": [it.resource], "verbs": [it.verb],
        });
        if let Some(name) = it.name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    });
    role["rules"] = left.collect();
}

/// Applies roles, and waits until each expected permission of `account` is granted or not.
pub async fn grant(
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
    /// Whether the API server grants it to this user.
    pub async fn is_granted(&self, sandbox: &Sandbox, account: &User) -> Result<bool, TestFailure> {
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

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            resource,
            group,
            ..
        } = self;
        write!(f, "{verb} {resource}")?;
        match group.as_str() {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}
