//! The progress records of handlers on an object, and their storages.

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

/// A storage of progress records on the object; users may implement their own.
///
/// Everything is read from the body of an event and written into the patch that follows it.
pub trait ProgressStorage: Debug + Send + Sync {
    /// The record of a handler.
    fn fetch(&self, id: &HandlerId, view: ObjectView<'_>) -> Option<Record>;

    /// All records on an object, for people who inspect it. A storage that shortens ids gives the
    /// full ones of `known` handlers.
    ///
    /// By default only known handlers are found.
    fn records(&self, known: &[HandlerId], view: ObjectView<'_>) -> Vec<(HandlerId, Record)> {
        let known = known.iter();
        let found = known.filter_map(|id| Some((id.clone(), self.fetch(id, view)?)));
        found.collect()
    }

    /// Writes the record of a handler.
    fn store(&self, id: &HandlerId, record: &Record, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Removes the record of a handler.
    fn purge(&self, id: &HandlerId, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Writes or removes a value without meaning, so that the API server sends an event.
    fn touch(&self, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch);

    /// Removes everything of this storage from an essence.
    fn clear(&self, essence: &mut Essence);

    /// The notes of the states that handlers finished on; Kopf has no such notes.
    fn fetch_handled_states(&self, view: ObjectView<'_>) -> Option<String>;

    /// Writes or removes these notes.
    fn store_handled_states(
        &self,
        notes: Option<&str>,
        view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    );

    /// The number of bytes that the notes may take on this object, beside the patch.
    fn handled_states_budget(&self, view: ObjectView<'_>, patch: &ObjectPatch) -> usize;
}
