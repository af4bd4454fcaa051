//! The object that spans, log lines and events are about.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tracing::Span;

use crate::client::resource::KindName;
use crate::events::span;
use crate::page::journal::entry::JournalSubject;
use crate::watch::ObjectKey;

/// An object with its kind. One is made for each call of a handler, so it shares what exists
/// already.
#[derive(Debug, Clone)]
pub(crate) struct ObjectRef {
    kind: Arc<KindName>,
    object: ReferencedObject,
}

#[derive(Debug, Clone)]
enum ReferencedObject {
    /// An object that the operator handles.
    Handled(Arc<ObjectKey>),
    /// Any other object, on which a handler posts events.
    Other(ObjectIdentity),
}

/// The identity of an object that the operator may not handle.
#[derive(Debug, Clone)]
pub(crate) struct ObjectIdentity {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
}

// === impl ObjectRef ===

impl ObjectRef {
    pub(crate) fn handled(kind: Arc<KindName>, key: Arc<ObjectKey>) -> Self {
        let object = ReferencedObject::Handled(key);
        Self { kind, object }
    }

    pub(crate) fn other(kind: KindName, object: ObjectIdentity) -> Self {
        Self {
            kind: Arc::new(kind),
            object: ReferencedObject::Other(object),
        }
    }

    pub(crate) fn api_version(&self) -> &str {
        &self.kind.api_version
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind.kind
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        match &self.object {
            ReferencedObject::Handled(key) => key.namespace.as_deref(),
            ReferencedObject::Other(object) => object.namespace.as_deref(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match &self.object {
            ReferencedObject::Handled(key) => &key.name,
            ReferencedObject::Other(object) => &object.name,
        }
    }

    pub(crate) fn uid(&self) -> &str {
        match &self.object {
            ReferencedObject::Handled(key) => &key.uid,
            ReferencedObject::Other(object) => &object.uid,
        }
    }

    /// The span of the whole processing of the object.
    pub(crate) fn span(&self) -> Span {
        let (kind, namespace, name, uid) = self.parts();
        span::object(&kind.api_version, &kind.kind, namespace, name, uid)
    }

    /// The span of one call of a handler that has no other span around it.
    pub(crate) fn handler_span(&self, id: &str, retry: u32) -> Span {
        let (kind, namespace, name, uid) = self.parts();
        let subject = [&*kind.api_version, &*kind.kind, name, uid];
        span::handler_of(subject, namespace, id, retry)
    }

    /// The object as the journal of the page names it.
    pub(crate) fn journaled(&self) -> JournalSubject<'_> {
        let (kind, namespace, name, uid) = self.parts();
        JournalSubject {
            api_version: &kind.api_version,
            kind: &kind.kind,
            namespace,
            name,
            uid,
        }
    }

    pub(super) fn is_event(&self) -> bool {
        let groups = ["v1", "events.k8s.io/v1"];
        self.kind() == "Event" && groups.contains(&self.api_version())
    }

    fn parts(&self) -> (&KindName, Option<&str>, &str, &str) {
        (&self.kind, self.namespace(), self.name(), self.uid())
    }
}

impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for ObjectRef {}

impl Hash for ObjectRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::watch::KindIndex;

    fn kind(api_version: &str, kind: &str) -> KindName {
        KindName {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    fn object() -> ObjectIdentity {
        ObjectIdentity {
            namespace: Some("default".to_owned()),
            name: "one".to_owned(),
            uid: "u".to_owned(),
        }
    }

    #[test]
    fn events_of_both_api_groups_are_recognized() {
        let subject = |group: &str, name: &str| ObjectRef::other(kind(group, name), object());
        assert!(subject("v1", "Event").is_event());
        assert!(subject("events.k8s.io/v1", "Event").is_event());
        assert!(!subject("kopf.dev/v1", "Event").is_event());
    }

    #[test]
    fn references_to_handled_and_other_objects_are_equal_if_the_identity_is() {
        let key = ObjectKey {
            kind: KindIndex(0),
            uid: "u".into(),
            namespace: Some("default".into()),
            name: "one".into(),
        };
        let handled = ObjectRef::handled(Arc::new(kind("v1", "Pod")), Arc::new(key));
        let mut known = HashSet::from([handled]);
        assert!(!known.insert(ObjectRef::other(kind("v1", "Pod"), object())));
        assert!(known.insert(ObjectRef::other(kind("v2", "Pod"), object())));
    }
}
