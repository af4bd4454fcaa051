//! What is remembered on an object about its unfinished handling, and where.

pub mod annotations;
pub mod key;
pub mod multi;
pub mod record;
pub mod status;

use std::fmt::Debug;

use crate::{
    handler::HandlerId,
    object::{ObjectView, essence::Essence, patch::ObjectPatch},
    progress::record::Record,
};

/// A place on the object for progress records; users may bring their own.
///
/// Everything is read from the body of an event and written into the patch that follows it.
pub trait ProgressStorage: Debug + Send + Sync {
    /// The record of a handler.
    fn fetch(&self, id: &HandlerId, view: ObjectView<'_>) -> Option<Record>;

    /// Writes the record of a handler.
    fn store(&self, id: &HandlerId, record: &Record, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Removes the record of a handler.
    fn purge(&self, id: &HandlerId, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Writes, or removes, something meaningless that makes the API server send an event.
    fn touch(&self, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Takes everything of this storage out of an essence.
    fn clear(&self, essence: &mut Essence);

    /// The notes about states that handlers saw, which Kopf does not know.
    fn fetch_handled_states(&self, view: ObjectView<'_>) -> Option<String>;

    /// Writes, or removes, these notes.
    fn store_handled_states(
        &self,
        notes: Option<&str>,
        view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    );

    /// How many bytes the notes may take on this object, beside what the patch brings.
    fn handled_states_budget(&self, view: ObjectView<'_>, patch: &ObjectPatch) -> usize;
}
