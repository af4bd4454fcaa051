//! Requests as the API server understands them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::kind::KindId;

/// A request of a user for objects of one kind.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The user who sends it.
    pub user: Arc<str>,
    /// The kind of the objects.
    pub kind: KindId,
    /// The namespace in the path; none for cluster-scoped kinds, and for all namespaces.
    pub namespace: Option<Arc<str>>,
    /// The action.
    pub verb: Verb,
}

/// The action of a request.
#[derive(Debug, Clone)]
pub enum Verb {
    /// Reads one object.
    Get {
        /// The name of the object.
        name: Arc<str>,
    },
    /// Lists objects.
    List(ListOptions),
    /// Creates an object.
    Create {
        /// The new object.
        body: Value,
    },
    /// Replaces an object (PUT).
    Update {
        /// The name of the object.
        name: Arc<str>,
        /// The part that is replaced.
        endpoint: Endpoint,
        /// The new state.
        body: Value,
    },
    /// Patches an object.
    Patch {
        /// The name of the object.
        name: Arc<str>,
        /// The part that is patched.
        endpoint: Endpoint,
        /// The changes.
        patch: SimulatedPatch,
    },
    /// Deletes an object.
    Delete {
        /// The name of the object.
        name: Arc<str>,
        /// The conditions.
        preconditions: DeletePreconditions,
    },
}

/// The endpoint of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// The object itself.
    Object,
    /// Its `/status`.
    Status,
}

/// The changes of a patch.
#[derive(Debug, Clone)]
pub enum SimulatedPatch {
    /// A JSON merge patch.
    Merge(Value),
    /// A JSON patch.
    Json(Value),
}

/// The conditions of a deletion.
#[derive(Debug, Clone, Default)]
pub struct DeletePreconditions {
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The resource version that the object must have.
    pub resource_version: Option<String>,
}

/// The part of each object that is listed and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectForm {
    /// The object.
    #[default]
    Whole,
    /// A `PartialObjectMetadata`.
    Metadata,
}

/// The options of a list.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// `labelSelector`.
    pub labels: Option<String>,
    /// `fieldSelector`.
    pub fields: Option<String>,
    /// `limit`.
    pub limit: Option<u32>,
    /// `continue`.
    pub continue_token: Option<String>,
    /// The form of the items.
    pub form: ObjectForm,
}

/// The options of a watch.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// `labelSelector`.
    pub labels: Option<String>,
    /// `fieldSelector`.
    pub fields: Option<String>,
    /// `resourceVersion`; without it the watch begins with the present objects.
    pub resource_version: Option<String>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `timeoutSeconds`.
    pub timeout: Option<Duration>,
    /// The form of the objects.
    pub form: ObjectForm,
}

// === impl Verb ===

impl Verb {
    /// The name of the action in rules for permissions.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Get { .. } => "get",
            Self::List(_) => "list",
            Self::Create { .. } => "create",
            Self::Update { .. } => "update",
            Self::Patch { .. } => "patch",
            Self::Delete { .. } => "delete",
        }
    }

    /// Whether the action can change an object.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !matches!(self, Self::Get { .. } | Self::List(_))
    }

    /// The name in the path.
    #[must_use]
    pub fn object_name(&self) -> Option<&str> {
        match self {
            Self::List(_) | Self::Create { .. } => None,
            Self::Get { name }
            | Self::Update { name, .. }
            | Self::Patch { name, .. }
            | Self::Delete { name, .. } => Some(name),
        }
    }

    /// The name of the one object that is read, by itself or by a list.
    #[must_use]
    pub fn read_name(&self) -> Option<&str> {
        match self {
            Self::Get { name } => Some(name),
            Self::List(options) => options.fields.as_deref()?.strip_prefix("metadata.name="),
            _ => None,
        }
    }

    /// The endpoint in the path.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        match self {
            Self::Update { endpoint, .. } | Self::Patch { endpoint, .. } => *endpoint,
            _ => Endpoint::Object,
        }
    }
}
