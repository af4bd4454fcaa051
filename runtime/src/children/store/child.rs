//! One child, as a watch or the answer to our application has brought it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use kopf_core::children::fields::FieldOwnership;
use kopf_core::children::options::ChildContents;
use kopf_core::children::{APPLIED_ANNOTATION, OWNER_LABEL};
use kopf_core::object::resource_version::ResourceVersion;
use serde_json::Value;

use crate::children::json::{KeptChild, RawMembers};
use crate::children::{RelatedRole, WatchedKind};

/// A child.
#[derive(Clone)]
pub(crate) struct StoredChild {
    pub(crate) uid: Box<str>,
    pub(crate) version: Option<ResourceVersion>,
    /// Its JSON, without its managed fields.
    pub(crate) text: Arc<str>,
    /// The digest in its annotation.
    pub(crate) applied: Option<Box<str>>,
    /// Whether it has our labels.
    pub(crate) labelled: bool,
    pub(crate) deleting: bool,
    /// Whose fields they are; none once the child was found to be as it should be.
    pub(super) fields: Option<Arc<FieldOwnership>>,
    /// The digest of the body that it certainly has.
    pub(super) in_sync: Option<Box<str>>,
    /// The digest of our fields after our last application, in case the API server does not keep
    /// all that we apply.
    pub(super) fields_after_apply: Option<u64>,
    /// The digest that we applied, and that another process of this operator has replaced.
    pub(crate) replaced: Option<Box<str>>,
    /// What our own deletion of it means.
    pub(super) ending: Option<ChildEnding>,
    /// Whether a watch has brought this version, and not only the answer to our application.
    pub(super) announced: bool,
    /// Whether a watch has brought it in any version: then the watch also tells of its end.
    pub(super) watched: bool,
}

/// Why we deleted a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildEnding {
    /// It is not applied any more: nothing follows.
    Pruned,
    /// Its owner waits for its end.
    Awaited,
}

// === impl StoredChild ===

impl StoredChild {
    /// Reads a child, and the uid of the owner that its label names; none if it has no uid, which
    /// never happens for a stored object.
    pub(crate) fn read(
        kind: &WatchedKind,
        text: &str,
        manager: &str,
    ) -> Option<(Self, Option<Box<str>>)> {
        let object = RawMembers::read(text)?;
        let metadata = object.members("metadata")?;
        let of_map = |map: &str, name: &str| Some(metadata.members(map)?.text(name)?.into());
        let owner: Option<Box<str>> = of_map("labels", OWNER_LABEL);
        let kept = KeptChild {
            name: &kind.spec.kind_name(),
            object: &object,
            metadata: &metadata,
            has_body: keeps_bodies(kind),
        };
        let fields = FieldOwnership::read(metadata.raw("managedFields"), manager);
        let version = metadata.text("resourceVersion");
        let child = Self {
            uid: metadata.text("uid")?.into(),
            version: version.as_deref().map(ResourceVersion::new),
            applied: of_map("annotations", APPLIED_ANNOTATION),
            labelled: owner.is_some(),
            deleting: metadata.text("deletionTimestamp").is_some(),
            text: serde_json::to_string(&kept).ok()?.into(),
            fields: Some(Arc::new(fields)),
            in_sync: None,
            fields_after_apply: None,
            replaced: None,
            ending: None,
            announced: true,
            watched: true,
        };
        Some((child, owner))
    }

    /// Whether it says itself that we applied it.
    pub(super) fn shows_application(&self) -> bool {
        self.labelled && self.applied.is_some()
    }

    /// Whether this process has applied it, or found it as it should be.
    pub(crate) fn was_as_desired(&self) -> bool {
        self.fields_after_apply.is_some()
    }

    /// Whether it is being deleted, as far as is known.
    pub(crate) fn is_ending(&self) -> bool {
        self.deleting || self.ending.is_some()
    }
}

pub(super) fn fields_digest(fields: &FieldOwnership) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_members(fields.ours(), &mut hasher);
    hasher.finish()
}

/// Hashes the names of all members; what else there is in managed fields is empty.
fn hash_members(value: &Value, hasher: &mut DefaultHasher) {
    let members = value.as_object().into_iter().flatten();
    for (name, value) in members {
        name.hash(hasher);
        hash_members(value, hasher);
    }
    // The end of a level: `{a: {b}}` is not `{a, b}`.
    hasher.write_u8(0);
}

/// Whether the bodies of a kind are kept.
pub(crate) fn keeps_bodies(kind: &WatchedKind) -> bool {
    kind.role == RelatedRole::Child(ChildContents::Bodies)
}
