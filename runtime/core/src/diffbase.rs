//! The storages of the last handled state of an object.

pub mod annotations;
pub mod multi;
pub mod packed;
pub mod status;

use std::fmt::Debug;

use crate::object::{ObjectView, diff::Baseline, essence::Essence, patch::ObjectPatch};

/// A storage of the last handled state on the object; users may implement their own.
pub trait DiffBaseStorage: Debug + Send + Sync {
    /// The state that was handled last.
    ///
    /// A state that cannot be read differs from any other in every field.
    fn fetch(&self, view: ObjectView<'_>) -> Baseline;

    /// Writes a state; an absent one removes the stored one.
    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Removes everything of this storage from an essence.
    fn clear(&self, essence: &mut Essence, view: ObjectView<'_>);

    /// The part of the object whose changes count; `essence` is Kopf's choice.
    fn build(&self, essence: Essence, _view: ObjectView<'_>) -> Essence {
        essence
    }
}

/// Whether states of this object may be stored as digests only.
#[must_use]
pub fn is_sensitive(view: ObjectView<'_>) -> bool {
    view.api_version() == Some("v1") && view.kind() == Some("Secret")
}
