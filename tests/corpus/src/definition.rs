//! The CustomResourceDefinition as the measurements need it: names, scope, versions, schemas.

use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::load::yaml::{self, Dialect};
use serde_json::Value;

use crate::schema::SchemaNode;

/// One version of a CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct DefinitionVersion {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// The name of the version.
    pub name: String,
    /// Whether the API server serves it.
    pub served: bool,
    /// Whether there is a status subresource.
    pub status_subresource: bool,
    /// The schema of the whole object.
    pub schema: SchemaNode,
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// All documents of a YAML or JSON text.
#[must_use]
pub fn documents(name: &str, text: &str) -> Vec<Value> {
    let mut sources = Sources::default();
    let source = sources.add(name, text);
    yaml::parse(
        &sources,
        source,
        Dialect::Kubernetes,
        &mut Diagnostics::default(),
    )
    .iter()
    .map(yaml::Node::to_json)
    .collect()
}

/// The versions of a CustomResourceDefinition of `apiextensions.k8s.io/v1`.
#[must_use]
pub fn versions(definition: &Value) -> Vec<DefinitionVersion> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| DefinitionVersion {
            group: text(&spec["group"]),
            kind: text(&spec["names"]["kind"]),
            plural: text(&spec["names"]["plural"]),
            scope: match spec["scope"].as_str() {
                Some("Cluster") => Scope::Cluster,
                _ => Scope::Namespaced,
            },
            name: text(&version["name"]),
            served: version["served"].as_bool().unwrap_or(false),
            status_subresource: version["subresources"]["status"].is_object(),
            schema: SchemaNode::from_json(&version["schema"]["openAPIV3Schema"]),
        })
        .collect()
}

/// The name of the version that clients prefer: stable before beta before alpha, newer first.
#[must_use]
pub fn preferred(versions: &[DefinitionVersion]) -> Option<&str> {
    versions
        .iter()
        .map(|version| version.name.as_str())
        .min_by(|left, right| {
            priority(right)
                .cmp(&priority(left))
                .then_with(|| left.cmp(right))
        })
}

/// Orders version names as Kubernetes does, the preferred one highest.
fn priority(name: &str) -> (u8, u64, u64) {
    let number = |text: &str| text.parse::<u64>().ok();
    let parts = name.strip_prefix('v').and_then(|rest| {
        if let Some((major, minor)) = rest.split_once("alpha") {
            return Some((1, number(major)?, number(minor)?));
        }
        if let Some((major, minor)) = rest.split_once("beta") {
            return Some((2, number(major)?, number(minor)?));
        }
        Some((3, number(rest)?, 0))
    });
    parts.unwrap_or((0, 0, 0))
}

// === impl DefinitionVersion ===

impl DefinitionVersion {
    /// Group and version, as objects name them.
    #[must_use]
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stable_versions_are_preferred_then_newer_ones() {
        let named = |names: &[&str]| {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            versions(&json!({"spec": {"versions": list}}))
        };
        assert_eq!(
            preferred(&named(&["v1beta2", "v1", "v2alpha1"])),
            Some("v1")
        );
        assert_eq!(
            preferred(&named(&["v1beta2", "v1beta10", "v2alpha1"])),
            Some("v1beta10")
        );
        assert_eq!(preferred(&named(&["other", "v1alpha1"])), Some("v1alpha1"));
    }
}
