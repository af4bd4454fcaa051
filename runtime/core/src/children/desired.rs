//! The body of a child as it is applied: owner, name, namespace, labels and digest filled in.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    children::{APPLIED_ANNOTATION, OPERATOR_LABEL, OWNER_LABEL},
    object::{
        ObjectView,
        hierarchy::{self, Adoption, Naming},
    },
};

/// The longest value of a label.
const MAX_LABEL: usize = 63;

/// The length of a digest in bytes.
const DIGEST_BYTES: usize = 16;

/// The kind of a child.
#[derive(Clone, Copy, Debug)]
pub struct ChildType<'a> {
    /// Its `apiVersion`.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// A child to be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredChild {
    /// The whole body.
    pub body: Value,
    /// Its name.
    pub name: String,
    /// Its namespace; none for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The digest of the body without itself.
    pub digest: String,
    /// Whether Kubernetes deletes it together with its owner.
    pub reachable: bool,
}

/// A child that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It has no name.
    #[error("a {0} to be applied needs a name")]
    Unnamed(String),
    /// It has no namespace, and its owner has none.
    #[error("the {0} {1} needs a namespace: its owner is cluster-scoped")]
    NoNamespace(String, String),
}

// === impl DesiredChild ===

impl DesiredChild {
    /// Fills in what the handler left out.
    ///
    /// # Errors
    /// If the child has no name, or no namespace.
    pub fn new(
        mut body: Value,
        child_type: ChildType<'_>,
        owner: ObjectView<'_>,
        operator: &str,
    ) -> Result<Self, Error> {
        let ChildType {
            api_version,
            kind,
            namespaced,
        } = child_type;
        let adoption = Adoption {
            naming: Naming::Strict,
            ..Adoption::default()
        };
        hierarchy::adopt(&mut body, owner, &adoption);
        if !namespaced {
            set_meta(&mut body, "namespace", None);
        }
        body["apiVersion"] = api_version.into();
        body["kind"] = kind.into();
        let view = ObjectView::new(&body);
        let name = view.name().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::Unnamed(kind.to_owned()))?;
        let (name, namespace) = (name.to_owned(), view.namespace().map(str::to_owned));
        if namespaced && namespace.is_none() {
            return Err(Error::NoNamespace(kind.to_owned(), name));
        }
        let reachable = owner.namespace().is_none() || owner.namespace() == namespace.as_deref();
        if !reachable {
            hierarchy::remove_owner_reference(&mut body, owner);
        }
        let stanza = meta_stanza(&mut body, "labels");
        stanza.insert(OPERATOR_LABEL.to_owned(), operator_label(operator).into());
        stanza.insert(OWNER_LABEL.to_owned(), owner.uid().into());
        let digest = digest(&body);
        let stanza = meta_stanza(&mut body, "annotations");
        stanza.insert(APPLIED_ANNOTATION.to_owned(), digest.as_str().into());
        Ok(Self {
            body,
            name,
            namespace,
            digest,
            reachable,
        })
    }
}

/// The value of the label of an operator: its name, or a digest of a name that no label can have.
#[must_use]
pub fn operator_label(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let valid = bytes.len() <= MAX_LABEL
        && ends
            .iter()
            .all(|end| end.is_some_and(|byte| is_plain(*byte)))
        && bytes
            .iter()
            .all(|byte| is_plain(*byte) || matches!(byte, b'-' | b'_' | b'.'));
    if valid {
        name.to_owned()
    } else {
        digest(&Value::from(name))
    }
}

/// A digest of a value; the order of its members does not count.
#[must_use]
pub fn digest(value: &Value) -> String {
    let mut text = Vec::new();
    feed(value, &mut text);
    let mut params = blake2b_simd::Params::new();
    let hash = params.hash_length(DIGEST_BYTES).hash(&text);
    hash.to_hex().to_string()
}

/// Writes a value with its members in the order of their names.
fn feed(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            text.push(b'{');
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_str());
            for (key, value) in members {
                write(key, text);
                text.push(b':');
                feed(value, text);
                text.push(b',');
            }
            text.push(b'}');
        }
        Value::Array(items) => {
            text.push(b'[');
            for item in items {
                feed(item, text);
                text.push(b',');
            }
            text.push(b']');
        }
        other => write(other, text),
    }
}

fn write(value: &impl Serialize, text: &mut Vec<u8>) {
    serde_json::to_writer(text, value).expect("texts and numbers can be written");
}

fn set_meta(body: &mut Value, name: &str, value: Option<Value>) {
    if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        match value {
            Some(value) => {
                meta.insert(name.to_owned(), value);
            }
            None => {
                meta.shift_remove(name);
            }
        }
    }
}

/// A map in the metadata, which `adopt` has made an object.
fn meta_stanza<'a>(body: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    let slot = &mut body["metadata"][name];
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("it is an object now")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG_MAP: ChildType<'_> = ChildType {
        api_version: "v1",
        kind: "ConfigMap",
        namespaced: true,
    };

    fn owner() -> Value {
        json!({
            "apiVersion": "kopf.dev/v1", "kind": "Owner",
            "metadata": {"name": "one", "namespace": "here", "uid": "u", "labels": {"a": "b"}},
        })
    }

    fn desired(body: Value, child_type: ChildType<'_>) -> Result<DesiredChild, Error> {
        DesiredChild::new(body, child_type, ObjectView::new(&owner()), "op")
    }

    #[test]
    fn owner_name_namespace_and_labels_are_filled_in() {
        let child = desired(json!({"data": {"x": "y"}}), CONFIG_MAP).unwrap();
        let meta = &child.body["metadata"];
        assert_eq!(
            (meta["name"].as_str(), meta["namespace"].as_str()),
            (Some("one"), Some("here"))
        );
        assert_eq!(meta["labels"]["a"], "b");
        assert_eq!(meta["labels"][OPERATOR_LABEL], "op");
        assert_eq!(meta["labels"][OWNER_LABEL], "u");
        assert_eq!(meta["ownerReferences"][0]["uid"], "u");
        assert_eq!(
            meta["annotations"][APPLIED_ANNOTATION],
            child.digest.as_str()
        );
        assert!(child.reachable);
    }

    #[test]
    fn a_child_elsewhere_has_no_owner_reference() {
        let far = json!({"metadata": {"namespace": "there"}});
        let far = desired(far, CONFIG_MAP).unwrap();
        assert!(!far.reachable);
        assert_eq!(far.body["metadata"].get("ownerReferences"), None);
        let cluster = ChildType {
            api_version: "rbac.authorization.k8s.io/v1",
            kind: "ClusterRole",
            namespaced: false,
        };
        let cluster = desired(json!({}), cluster).unwrap();
        assert_eq!((cluster.reachable, cluster.namespace), (false, None));
        assert_eq!(cluster.body["metadata"].get("namespace"), None);
    }

    #[test]
    fn a_cluster_scoped_owner_reaches_all_children_that_have_a_namespace() {
        let mut owner = owner();
        owner["metadata"]
            .as_object_mut()
            .unwrap()
            .shift_remove("namespace");
        let view = ObjectView::new(&owner);
        let nowhere = DesiredChild::new(json!({}), CONFIG_MAP, view, "op");
        assert!(matches!(nowhere, Err(Error::NoNamespace(..))));
        let child = json!({"metadata": {"namespace": "there"}});
        let child = DesiredChild::new(child, CONFIG_MAP, view, "op").unwrap();
        assert!(child.reachable);
    }

    #[test]
    fn the_digest_follows_the_content_and_not_the_order() {
        let one = json!({"a": 1, "b": [1, 2]});
        let same = json!({"b": [1, 2], "a": 1});
        assert_eq!(digest(&one), digest(&same));
        assert_ne!(digest(&one), digest(&json!({"a": 1, "b": [2, 1]})));
        assert_ne!(digest(&json!("1")), digest(&json!(1)));
    }

    #[test]
    fn the_digest_stays_that_of_children_in_clusters() {
        let value = json!({"b": [1, -2.5, true, null], "a": {"\"x\n": "ä"}});
        assert_eq!(digest(&value), "d98f877ea1da34c4cf32ff898881addd");
    }

    #[test]
    fn any_name_of_an_operator_becomes_a_label() {
        assert_eq!(operator_label("my-operator.v1"), "my-operator.v1");
        for odd in ["", "-x", "a b", &"x".repeat(64)] {
            let label = operator_label(odd);
            assert_eq!(label.len(), 2 * DIGEST_BYTES, "{odd}");
        }
    }
}
