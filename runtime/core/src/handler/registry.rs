//! The declared handlers of one kind, in their order, and the selection among them.

use std::sync::Arc;

use crate::{
    cause::Subject,
    handler::{HandlerId, HandlerSpec, Trigger},
    object::{essence::EssenceRules, path::FieldPath},
};

/// All handlers declared for one kind of objects.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    handlers: Vec<Arc<HandlerSpec>>,
    tracking: Tracking,
}

/// The objects whose last handled state is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// Those for which a change handler may be called; the operator does not write to others.
    #[default]
    Matching,
    /// All, so that an object that begins to match has a last handled state.
    Always,
}

/// An invalid declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two handlers would have the same record.
    #[error("handler `{0}` is declared twice for the same trigger")]
    Duplicate(HandlerId),
    /// A field handler names no field.
    #[error("handler `{0}` reacts to a field, but names none")]
    MissingField(HandlerId),
}

// === impl Registry ===

impl Registry {
    /// Checks the declarations.
    ///
    /// # Errors
    /// The first invalid declaration.
    pub fn new(handlers: impl IntoIterator<Item = HandlerSpec>) -> Result<Self, Error> {
        let mut registry = Self::default();
        for handler in handlers {
            if handler.trigger == Trigger::Field && handler.field().is_none() {
                return Err(Error::MissingField(handler.id));
            }
            let same_trigger = |other: &&Arc<HandlerSpec>| {
                std::mem::discriminant(&other.trigger) == std::mem::discriminant(&handler.trigger)
            };
            if registry
                .handlers
                .iter()
                .filter(same_trigger)
                .any(|other| other.id == handler.id)
            {
                return Err(Error::Duplicate(handler.id));
            }
            registry.handlers.push(Arc::new(handler));
        }
        Ok(registry)
    }

    /// The same handlers with another tracking.
    #[must_use]
    pub fn tracking(self, tracking: Tracking) -> Self {
        Self { tracking, ..self }
    }

    /// Whether the last handled state of all objects is stored.
    #[must_use]
    pub fn tracks_all(&self) -> bool {
        self.tracking == Tracking::Always
    }

    /// All handlers in their order.
    #[must_use]
    pub fn handlers(&self) -> &[Arc<HandlerSpec>] {
        &self.handlers
    }

    /// The change handlers, which run in cycles.
    pub fn change_handlers(&self) -> impl Iterator<Item = &Arc<HandlerSpec>> {
        self.handlers
            .iter()
            .filter(|handler| handler.trigger.is_change())
    }

    /// Whether there are change handlers.
    #[must_use]
    pub fn handles_changes(&self) -> bool {
        self.change_handlers().next().is_some()
    }

    /// The ids of all change handlers, each once, in their order.
    #[must_use]
    pub fn owned_ids(&self) -> Vec<HandlerId> {
        let mut ids = Vec::new();
        for handler in self.change_handlers() {
            if !ids.contains(&handler.id) {
                ids.push(handler.id.clone());
            }
        }
        ids
    }

    /// Event handlers that match.
    #[must_use]
    pub fn event_handlers(&self, subject: &Subject<'_>) -> Vec<Arc<HandlerSpec>> {
        self.matching(subject, |trigger| trigger == Trigger::Event)
    }

    /// Daemons and timers, matching or not, in their order.
    pub fn background_handlers(&self) -> impl Iterator<Item = &Arc<HandlerSpec>> {
        self.handlers
            .iter()
            .filter(|handler| handler.trigger.is_background())
    }

    /// Change handlers that are called for a cause, one for each id.
    #[must_use]
    pub fn selected(&self, subject: &Subject<'_>) -> Vec<Arc<HandlerSpec>> {
        self.matching(subject, Trigger::is_change)
    }

    /// Whether no change handler could be called for the object, so that the operator must not
    /// write to it.
    #[must_use]
    pub fn ignores(&self, subject: &Subject<'_>) -> bool {
        !self.tracks_all()
            && !self
                .change_handlers()
                .any(|handler| handler.prematches(subject))
    }

    /// Whether the results and records that a cycle writes may require another turn.
    ///
    /// They do if a handler is about a field in `status` or `metadata`. The need for the finalizer
    /// may depend on the last handled state, too, which the end of a cycle replaces.
    #[must_use]
    pub fn reacts_to_own_writes(&self) -> bool {
        let is_elsewhere = |stanza: &String| stanza != "status" && stanza != "metadata";
        self.handlers.iter().any(|handler| {
            let filters_deletion = handler.trigger.needs_finalizer() && !handler.filters.is_empty();
            let field = handler.field().map(FieldPath::parts);
            filters_deletion || field.is_some_and(|parts| !parts.first().is_some_and(is_elsewhere))
        })
    }

    /// The rules of the essence for this kind: it includes the fields of all handlers.
    #[must_use]
    pub fn essence_rules(&self, ignored: &[FieldPath]) -> EssenceRules {
        let mut watched: Vec<FieldPath> = Vec::new();
        let counting = |handler: &&Arc<HandlerSpec>| handler.trigger != Trigger::Index;
        let handlers = self.handlers.iter().filter(counting);
        for field in handlers.filter_map(|handler| handler.field()) {
            if !watched.contains(field) {
                watched.push(field.clone());
            }
        }
        EssenceRules {
            watched,
            ignored: ignored.to_vec(),
        }
    }

    fn matching(
        &self,
        subject: &Subject<'_>,
        wanted: impl Fn(Trigger) -> bool,
    ) -> Vec<Arc<HandlerSpec>> {
        let mut matching: Vec<Arc<HandlerSpec>> = Vec::new();
        for handler in &self.handlers {
            if wanted(handler.trigger)
                && matching.iter().all(|other| other.id != handler.id)
                && handler.matches(subject)
            {
                matching.push(Arc::clone(handler));
            }
        }
        matching
    }
}

#[cfg(test)]
mod tests;
