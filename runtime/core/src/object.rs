//! A handled object: a read-only view of its JSON, and what is computed from it.

pub mod applied;
pub mod condition;
pub mod diff;
pub mod draft;
pub mod essence;
pub mod finalizer;
pub mod hashed;
pub mod hierarchy;
pub mod patch;
pub mod patch_response;
pub mod path;
pub mod resource_version;

use serde_json::{Map, Value};

/// The API server's limit for all annotations of one object together.
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The members up to which comparing names costs less than hashing one.
const FEW_MEMBERS: usize = 16;

/// A member of a map. Most maps of an object are small.
#[must_use]
pub fn member<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if map.len() > FEW_MEMBERS {
        return map.get(name);
    }
    let mut members = map.iter();
    members.find(|(key, _)| *key == name).map(|(_, it)| it)
}

/// A view of the JSON of an object, in which any field may be missing or malformed.
#[derive(Clone, Copy, Debug)]
pub struct ObjectView<'a> {
    body: &'a Value,
}

// === impl ObjectView ===

impl<'a> ObjectView<'a> {
    /// A view of a body.
    #[must_use]
    pub fn new(body: &'a Value) -> Self {
        Self { body }
    }

    /// The raw body.
    #[must_use]
    pub fn body(self) -> &'a Value {
        self.body
    }

    /// Top-level `apiVersion`.
    #[must_use]
    pub fn api_version(self) -> Option<&'a str> {
        self.field("apiVersion")?.as_str()
    }

    /// Top-level `kind`.
    #[must_use]
    pub fn kind(self) -> Option<&'a str> {
        self.field("kind")?.as_str()
    }

    /// A field of `metadata`.
    #[must_use]
    pub fn meta(self, field: &str) -> Option<&'a Value> {
        member(self.field("metadata")?.as_object()?, field)
    }

    fn field(self, name: &str) -> Option<&'a Value> {
        member(self.body.as_object()?, name)
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        self.meta("name")?.as_str()
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(self) -> Option<&'a str> {
        self.meta("namespace")?.as_str()
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(self) -> Option<&'a str> {
        self.meta("uid")?.as_str()
    }

    /// `metadata.resourceVersion`.
    #[must_use]
    pub fn resource_version(self) -> Option<&'a str> {
        self.meta("resourceVersion")?.as_str()
    }

    /// Whether deletion was requested.
    #[must_use]
    pub fn is_being_deleted(self) -> bool {
        self.meta("deletionTimestamp")
            .is_some_and(|time| !time.is_null())
    }

    /// All labels, if there are any.
    #[must_use]
    pub fn labels(self) -> Option<&'a Map<String, Value>> {
        self.meta("labels")?.as_object()
    }

    /// All annotations, if there are any.
    #[must_use]
    pub fn annotations(self) -> Option<&'a Map<String, Value>> {
        self.meta("annotations")?.as_object()
    }

    /// The value of one label.
    #[must_use]
    pub fn label(self, key: &str) -> Option<&'a str> {
        member(self.labels()?, key)?.as_str()
    }

    /// The value of one annotation.
    #[must_use]
    pub fn annotation(self, key: &str) -> Option<&'a str> {
        member(self.annotations()?, key)?.as_str()
    }

    /// The finalizers in their order.
    pub fn finalizers(self) -> impl Iterator<Item = &'a str> {
        self.meta("finalizers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// Whether Kubernetes overwrites the annotations of this object with those of its owner, as
    /// it does for the ReplicaSets of a Deployment.
    #[must_use]
    pub fn inherits_annotations(self) -> bool {
        self.kind() == Some("ReplicaSet")
            && self
                .meta("ownerReferences")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .any(|owner| owner.get("kind").and_then(Value::as_str) == Some("Deployment"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_body_has_no_fields() {
        let body = json!(null);
        let view = ObjectView::new(&body);
        assert_eq!(view.name(), None);
        assert_eq!(view.finalizers().count(), 0);
        assert!(!view.is_being_deleted());
        assert!(!view.inherits_annotations());
    }

    #[test]
    fn metadata_is_read() {
        let body = json!({"kind": "ReplicaSet", "metadata": {
            "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "deletionTimestamp": "2020-01-01T00:00:00Z",
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x", "y"],
            "ownerReferences": [{"kind": "Deployment"}],
        }});
        let view = ObjectView::new(&body);
        assert_eq!((view.namespace(), view.name()), (Some("ns"), Some("n")));
        assert_eq!(view.uid(), Some("u"));
        assert_eq!(view.resource_version(), Some("7"));
        assert_eq!(view.label("a"), Some("b"));
        assert_eq!(view.annotation("c"), Some("d"));
        assert_eq!(view.finalizers().collect::<Vec<_>>(), ["x", "y"]);
        assert!(view.is_being_deleted());
        assert!(view.inherits_annotations());
    }
}
