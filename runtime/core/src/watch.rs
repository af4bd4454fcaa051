//! What lists and watches of a kind show: events, batches of them, and the objects that are known.

pub mod batch;
pub mod known_objects;
pub mod stream_failure;

use std::fmt;

use crate::{cause::detect::EventKind, object::resource_version::ResourceVersion};

/// The type of a watch event, or the listing of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchEventType {
    /// The object was found in a list.
    Listed,
    /// The object was created, or matches the selectors of the watch now.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted, or does not match the selectors of the watch any more.
    Deleted,
}

/// A state of an object from a list or a watch; `T` is its text.
#[derive(Debug, Clone)]
pub struct ObservedState<T> {
    /// The type of the event.
    pub event_type: WatchEventType,
    /// The version of the object.
    pub version: Option<ResourceVersion>,
    /// The object.
    pub text: T,
}

// === impl WatchEventType ===

impl WatchEventType {
    /// The meaning of the event for the cause.
    #[must_use]
    pub fn kind(self) -> EventKind {
        match self {
            Self::Listed => EventKind::Listed,
            Self::Added | Self::Modified => EventKind::Changed,
            Self::Deleted => EventKind::Deleted,
        }
    }
}

impl fmt::Display for WatchEventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "LISTED",
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        })
    }
}
