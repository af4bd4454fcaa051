//! The kinds that objects own, and the kinds that they refer to.

use super::status_subresource::StatusSubresource;
use crate::load::crd::Scope;
use crate::load::manifest::ChildUpdate;
use crate::rust::RustPath;

/// A kind that the operator only watches for its owners or users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedResource {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural in URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// Whether it has a status subresource.
    pub status: StatusSubresource,
    /// Whether a CustomResourceDefinition defines it.
    pub is_custom: bool,
    /// The path of the Rust type.
    pub object: RustPath,
}

/// A kind that objects own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildDeclaration {
    /// The kind.
    pub related: RelatedResource,
    /// How a child gets new values.
    pub update: ChildUpdate,
    /// Whether several children are updated one after the other.
    pub one_at_a_time: bool,
    /// Whether a child that is no longer applied is deleted.
    pub prune: bool,
    /// Whether whole children are kept in memory.
    pub bodies: bool,
}

/// A kind that objects refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedKind {
    /// The kind.
    pub related: RelatedResource,
    /// The field with the name, or with the names.
    pub by: String,
    /// The field with the namespace.
    pub namespace: Option<String>,
}

// === impl RelatedResource ===

impl RelatedResource {
    /// `v1/Pod`, `batch/v1/Job`.
    #[must_use]
    pub fn name(&self) -> String {
        let Self {
            group,
            version,
            kind,
            ..
        } = self;
        match group.as_str() {
            "" => format!("{version}/{kind}"),
            group => format!("{group}/{version}/{kind}"),
        }
    }
}

// === impl ChildDeclaration ===

impl ChildDeclaration {
    /// Whether the operator ever deletes such a child: it prunes, or recreates.
    #[must_use]
    pub fn is_deleted_by_operator(&self) -> bool {
        self.prune || self.update == ChildUpdate::Recreate
    }

    /// Whether an owner with this scope can be in an owner reference of the child.
    #[must_use]
    pub fn is_reachable_from(&self, owner: Scope) -> bool {
        owner == Scope::Cluster || self.related.scope == Scope::Namespaced
    }
}
