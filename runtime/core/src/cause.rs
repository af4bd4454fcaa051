//! The cause of a turn: the reason, and the change of the object.

pub mod detect;

use std::{any::Any, fmt};

use crate::object::{
    ObjectView,
    diff::{Baseline, Diff},
    essence::Essence,
};

/// The reason of a turn, with the words that Kopf stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The object has no last handled state.
    Create,
    /// It differs from its last handled state.
    Update,
    /// It is being deleted, and has our finalizer.
    Delete,
    /// The operator started and found it unchanged.
    Resume,
    /// It has no change that counts.
    Noop,
    /// It is being deleted, and does not have our finalizer.
    Free,
    /// It is deleted.
    Gone,
}

/// One change of one object, for its handlers and their filters.
#[derive(Clone, Copy, Debug)]
pub struct Cause<'a> {
    /// The reason.
    pub reason: Reason,
    /// Whether resume handlers are still due for this object in this process.
    pub initial: bool,
    /// The object as the event shows it.
    pub body: ObjectView<'a>,
    /// The last handled state.
    pub old: &'a Baseline,
    /// The present state.
    pub new: &'a Essence,
    /// From old to new.
    pub diff: &'a Diff,
}

/// The subject of filters: an object, and for change handlers also its change.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The object as the event shows it.
    pub body: ObjectView<'a>,
    /// The change; none for event handlers, daemons and timers.
    pub cause: Option<&'a Cause<'a>>,
    /// The runtime's own data about the occasion, such as the type of a watch event.
    pub context: &'a (dyn Any + Send + Sync),
    /// The runtime's own data about the handler whose filters are evaluated, such as its indices.
    pub handler: &'a (dyn Any + Send + Sync),
}

// === impl Reason ===

impl Reason {
    /// Whether change handlers run for this reason.
    #[must_use]
    pub fn is_handled(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Update | Self::Delete | Self::Resume
        )
    }

    /// The word in stored records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Resume => "resume",
            Self::Noop => "noop",
            Self::Free => "free",
            Self::Gone => "gone",
        }
    }

    /// Reads the word in a stored record.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::Create,
            Self::Update,
            Self::Delete,
            Self::Resume,
            Self::Noop,
            Self::Free,
            Self::Gone,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == word)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Subject ===

impl<'a> Subject<'a> {
    /// An object without a change.
    #[must_use]
    pub fn object(body: ObjectView<'a>) -> Self {
        Self {
            body,
            cause: None,
            context: &(),
            handler: &(),
        }
    }

    /// An object with its change.
    #[must_use]
    pub fn change(cause: &'a Cause<'a>) -> Self {
        Self {
            body: cause.body,
            cause: Some(cause),
            context: &(),
            handler: &(),
        }
    }

    /// The same with data about the occasion.
    #[must_use]
    pub fn with_context(self, context: &'a (dyn Any + Send + Sync)) -> Self {
        Self { context, ..self }
    }

    /// The same with data about the handler.
    #[must_use]
    pub fn with_handler(self, handler: &'a (dyn Any + Send + Sync)) -> Self {
        Self { handler, ..self }
    }
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("body", &self.body)
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}
