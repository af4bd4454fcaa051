//! What an object says about the attempts of its handlers.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;

use kopf_core::cause::Reason;
use kopf_core::handled_states::{HandledStates, RecordStamp};
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::object::ObjectView;
use kopf_core::object::diff::{Baseline, same};
use kopf_core::object::finalizer::is_present;
use kopf_core::object::hashed::HashedState;
use kopf_core::object::path::FieldPath;
use serde_json::Value;

use crate::operator::{OperatorSetup, declared_of};

/// What an object says about an attempt that has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownEnd {
    /// It has finished.
    Finished,
    /// Another attempt is due, for this state or for another one.
    Open,
    /// Nothing: the attempt might never have been made.
    Unknown,
}

/// A state of an object, whose facts are read once for all attempts.
pub(super) struct ShownObject<'a> {
    setup: &'a OperatorSetup,
    view: ObjectView<'a>,
    base: OnceCell<Baseline>,
    /// The handlers of whose notes it is not known which state they are about.
    unknown: OnceCell<BTreeSet<HandlerId>>,
}

// === impl ShownObject ===

impl<'a> ShownObject<'a> {
    pub(super) fn new(setup: &'a OperatorSetup, object: &'a Value) -> Self {
        Self {
            setup,
            view: ObjectView::new(object),
            base: OnceCell::new(),
            unknown: OnceCell::new(),
        }
    }

    /// What the record of a handler says; none if there is no record.
    pub(super) fn by_record(&self, id: &HandlerId) -> Option<ShownEnd> {
        let record = self.setup.persistence.progress.fetch(id, self.view)?;
        match record.is_finished() && !self.is_for_unknown_state(id) {
            true => Some(ShownEnd::Finished),
            false => Some(ShownEnd::Open),
        }
    }

    /// What the object says of an attempt whose handler has no record.
    pub(super) fn without_record(&self, id: &HandlerId, reason: Reason, state: &Value) -> ShownEnd {
        let is_shown = match (reason, self.base()) {
            (Reason::Delete, _) => {
                let finalizer = &self.setup.persistence.finalizer;
                self.view.is_being_deleted() && !is_present(self.view, finalizer)
            }
            // The base was there before a resume handler was called.
            (Reason::Resume, _) | (_, Baseline::Absent) => false,
            // A handler of updates, too, may be excused from one for a while by its record.
            (Reason::Create, _) if !handles_updates(self.setup, id) => true,
            (_, Baseline::Known(_)) => self.base_has(id, state),
            (_, Baseline::Hashed(_)) => false,
        };
        match is_shown {
            true => ShownEnd::Finished,
            false => ShownEnd::Unknown,
        }
    }

    /// Whether the last handled state has what a handler is about as this state has it.
    pub(super) fn base_has(&self, id: &HandlerId, state: &Value) -> bool {
        match self.base() {
            Baseline::Known(base) => {
                let path = scope(self.setup, id);
                same(path.resolve(base.as_value()), path.resolve(state))
            }
            Baseline::Absent | Baseline::Hashed(_) => false,
        }
    }

    fn base(&self) -> &Baseline {
        self.base
            .get_or_init(|| self.setup.persistence.baseline(self.view))
    }

    /// Whether it is not known which state the note of a handler is about: it was written with
    /// another base, as with progress in the status, where a write takes two requests; or the
    /// operator could not read the note and says so.
    fn is_for_unknown_state(&self, id: &HandlerId) -> bool {
        let unknown = self.unknown.get_or_init(|| {
            let progress = &self.setup.persistence.progress;
            let Some(notes) = progress.fetch_handled_states(self.view) else {
                return BTreeSet::new();
            };
            let salt = self.view.uid().unwrap_or_default();
            let Some(notes) = HandledStates::decode(&notes, self.base(), salt) else {
                return HandledStates::stamps(&notes).into_keys().collect();
            };
            let unknown = Baseline::Hashed(HashedState::unknown(salt));
            let is_unknown = |id: &&HandlerId| {
                let record = progress.fetch(id, self.view);
                let stamp = record.as_ref().and_then(RecordStamp::of);
                stamp.and_then(|stamp| notes.state(id, stamp)) == Some(&unknown)
            };
            notes.ids().filter(is_unknown).cloned().collect()
        });
        unknown.contains(id)
    }
}

/// The declarations of a handler, or of the one above it.
pub(super) fn declared<'a>(
    setup: &'a OperatorSetup,
    id: &'a HandlerId,
) -> impl Iterator<Item = &'a HandlerSpec> {
    let declared = declared_of(id.as_str());
    let handlers = setup.registry.handlers().iter();
    let handlers = handlers.map(|it| &**it);
    handlers.filter(move |it| it.id.as_str() == declared)
}

fn handles_updates(setup: &OperatorSetup, id: &HandlerId) -> bool {
    declared(setup, id).any(|it| matches!(it.trigger, Trigger::Update | Trigger::Field))
}

/// The part of the state that a handler is about; for a sub-handler, that of the declared one.
pub(super) fn scope<'a>(setup: &'a OperatorSetup, id: &'a HandlerId) -> Cow<'a, FieldPath> {
    let field = declared(setup, id).find_map(HandlerSpec::field);
    field.map_or_else(|| Cow::Owned(FieldPath::root()), Cow::Borrowed)
}
