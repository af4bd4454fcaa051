//! Kinds that the API server serves, read from CustomResourceDefinitions or built in.

use serde_json::{Value, json};

use super::schema::StructuralSchema;

/// A kind that the API server has been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(pub(crate) usize);

/// The definition of a kind.
#[derive(Debug, Clone)]
pub struct KindDefinition {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural, as in paths.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub scope: Scope,
    /// Whether `/status` is an endpoint of its own.
    pub status: StatusSubresource,
    pub(crate) strategy: WriteStrategy,
    pub(crate) schema: StructuralSchema,
}

/// The scope of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Its objects are in namespaces.
    Namespaced,
    /// Its objects are in no namespace.
    Cluster,
}

/// The endpoint for the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusSubresource {
    /// `/status` is an endpoint of its own.
    Present,
    /// The status is written with the rest.
    Absent,
}

/// The rules of writes that differ between kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteStrategy {
    Custom,
    ConfigMap,
    Lease,
    Namespace,
}

// === impl KindDefinition ===

impl KindDefinition {
    /// The kind that a CustomResourceDefinition defines, in its first served version.
    ///
    /// # Panics
    /// If it is not one that the API server accepts.
    #[must_use]
    pub fn from_crd(crd: &Value) -> Self {
        let spec = &crd["spec"];
        let version = spec["versions"]
            .as_array()
            .and_then(|versions| versions.iter().find(|it| it["served"] == true))
            .expect("a version is served");
        let status = match version["subresources"].get("status") {
            Some(_) => StatusSubresource::Present,
            None => StatusSubresource::Absent,
        };
        Self {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&spec["names"]["kind"]),
            plural: text(&spec["names"]["plural"]),
            scope: match spec["scope"].as_str() {
                Some("Cluster") => Scope::Cluster,
                _ => Scope::Namespaced,
            },
            status,
            strategy: WriteStrategy::Custom,
            schema: StructuralSchema::parse(&version["schema"]["openAPIV3Schema"]),
        }
    }

    /// `Lease`, for leader elections.
    #[must_use]
    pub fn leases() -> Self {
        let micro_time = json!({"type": "string", "format": "micro-time"});
        let spec = json!({"type": "object", "properties": {
            "holderIdentity": {"type": "string"},
            "leaseDurationSeconds": {"type": "integer"},
            "acquireTime": micro_time,
            "renewTime": micro_time,
            "leaseTransitions": {"type": "integer"},
            "strategy": {"type": "string"},
            "preferredHolder": {"type": "string"},
        }});
        Self::built_in(
            ("coordination.k8s.io", "Lease", "leases"),
            Scope::Namespaced,
            WriteStrategy::Lease,
            &json!({"spec": spec}),
        )
    }

    /// `ConfigMap`, as a kind without generation, schema and status.
    #[must_use]
    pub fn config_maps() -> Self {
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        Self::built_in(
            ("", "ConfigMap", "configmaps"),
            Scope::Namespaced,
            WriteStrategy::ConfigMap,
            &json!({"data": texts, "binaryData": texts, "immutable": {"type": "boolean"}}),
        )
    }

    /// `Namespace`.
    #[must_use]
    pub fn namespaces() -> Self {
        let names = json!({"type": "array", "items": {"type": "string"}});
        let spec = json!({"type": "object", "properties": {"finalizers": names}});
        let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        Self::built_in(
            ("", "Namespace", "namespaces"),
            Scope::Cluster,
            WriteStrategy::Namespace,
            &json!({"spec": spec, "status": status}),
        )
    }

    fn built_in(
        (group, kind, plural): (&str, &str, &str),
        scope: Scope,
        strategy: WriteStrategy,
        properties: &Value,
    ) -> Self {
        Self {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            scope,
            status: match strategy {
                WriteStrategy::Namespace => StatusSubresource::Present,
                _ => StatusSubresource::Absent,
            },
            strategy,
            schema: StructuralSchema::parse(&json!({"type": "object", "properties": properties})),
        }
    }

    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The plural with the group, as in messages.
    pub(crate) fn resource_name(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.plural, self.group)
    }
}

// === impl WriteStrategy ===

impl WriteStrategy {
    pub(crate) fn has_generation(self) -> bool {
        self == Self::Custom
    }

    pub(crate) fn updates_without_version(self) -> bool {
        matches!(self, Self::ConfigMap | Self::Namespace)
    }

    pub(crate) fn creates_on_update(self) -> bool {
        self == Self::Lease
    }

    /// Whether the items of a list have `apiVersion` and `kind`.
    pub(crate) fn items_have_type(self) -> bool {
        self == Self::Custom
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
