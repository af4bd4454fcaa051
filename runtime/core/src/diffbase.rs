//! The last handled state of an object, and where it is kept.

pub mod annotations;
pub mod multi;
pub mod packed;
pub mod status;

use std::fmt::Debug;

use crate::object::{ObjectView, diff::Baseline, essence::Essence, patch::ObjectPatch};

/// A place on the object for the last handled state; users may bring their own.
pub trait DiffBaseStorage: Debug + Send + Sync {
    /// The state that was handled last.
    ///
    /// A state that cannot be read is one that differs from any other, in every field.
    fn fetch(&self, view: ObjectView<'_>) -> Baseline;

    /// Writes a state; with an absent one, removes what is there.
    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Takes everything of this storage out of an essence.
    fn clear(&self, essence: &mut Essence, view: ObjectView<'_>);
}

/// Whether states of this object may be kept as digests only.
#[must_use]
pub fn is_sensitive(view: ObjectView<'_>) -> bool {
    view.api_version() == Some("v1") && view.kind() == Some("Secret")
}
