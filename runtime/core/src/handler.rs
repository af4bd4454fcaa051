//! Declared handlers: their ids, triggers, filters, and retry policies.

pub mod filter;
pub mod finalizer_need;
pub mod registry;
pub mod retry;
pub mod watch_selectors;

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::{
    cause::{Cause, Reason, Subject},
    handler::{filter::Filters, retry::RetryPolicy},
    object::path::FieldPath,
};

/// The id of a handler; it must be stable over releases, since objects carry it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(Arc<str>);

/// The trigger of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// Every watch event of the object; there is no record.
    Event,
    /// The object was created.
    Create,
    /// The object was changed.
    Update,
    /// The object is being deleted.
    Delete {
        /// Whether the API server may delete the object without waiting for this handler.
        optional: bool,
    },
    /// The operator started and found the object.
    Resume {
        /// Whether the handler is called for objects that are being deleted, too.
        deleted: bool,
    },
    /// The field changed, in a creation, an update or a deletion.
    Field,
    /// The parent handler runs.
    Sub {
        /// Whether its field must have changed, as it must for the parent.
        changing: bool,
    },
    /// The object exists: a task runs for it.
    Daemon,
    /// The object exists: the handler is called at intervals.
    Timer,
    /// The object was listed or changed: its index entries are computed.
    Index,
    /// The object or one of its children is not as it should be: its children are applied.
    Reconcile,
}

/// A declared handler, without its function.
#[derive(Clone, Debug)]
pub struct HandlerSpec {
    /// Its id.
    pub id: HandlerId,
    /// Its trigger.
    pub trigger: Trigger,
    /// The conditions under which it is called.
    pub filters: Filters,
    /// Its retry policy.
    pub policy: RetryPolicy,
}

// === impl HandlerId ===

impl HandlerId {
    /// An id as it was declared.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id of a handler of a field.
    #[must_use]
    pub fn of_field(id: &str, field: &FieldPath) -> Self {
        Self(format!("{id}/{field}").into())
    }

    /// The id of a sub-handler.
    #[must_use]
    pub fn sub(&self, id: &str) -> Self {
        Self(format!("{self}/{id}").into())
    }

    /// Whether it is the id of a sub-handler of this one.
    #[must_use]
    pub fn is_sub_of(&self, parent: &Self) -> bool {
        let rest = self.0.strip_prefix(&*parent.0);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The ids of all handlers that may be above it; not all of them exist, as the id of a handler
    /// of a field has a slash, too.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = Self> {
        let ends = self.0.match_indices('/').map(|(at, _)| at);
        ends.map(|end| Self::new(&self.0[..end]))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HandlerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for HandlerId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl Borrow<str> for HandlerId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

// === impl Trigger ===

impl Trigger {
    /// Whether handlers of this trigger run in cycles.
    #[must_use]
    pub fn is_change(self) -> bool {
        !matches!(
            self,
            Self::Event | Self::Daemon | Self::Timer | Self::Index | Self::Reconcile
        )
    }

    /// Whether handlers of this trigger run in the background: daemons and timers.
    #[must_use]
    pub fn is_background(self) -> bool {
        matches!(self, Self::Daemon | Self::Timer)
    }

    /// Whether an object must not be deleted before the handler is done with it.
    #[must_use]
    pub fn needs_finalizer(self) -> bool {
        matches!(
            self,
            Self::Delete { optional: false } | Self::Daemon | Self::Timer
        )
    }

    /// Whether the declared field must differ between old and new.
    #[must_use]
    pub fn needs_change(self) -> bool {
        matches!(
            self,
            Self::Update | Self::Field | Self::Sub { changing: true }
        )
    }

    /// Whether handlers of this trigger are called for this cause, regardless of filters.
    #[must_use]
    pub fn fits(self, cause: &Cause<'_>) -> bool {
        match self {
            Self::Event | Self::Daemon | Self::Timer | Self::Index | Self::Reconcile => false,
            Self::Create => cause.reason == Reason::Create,
            Self::Update => cause.reason == Reason::Update,
            Self::Delete { .. } => cause.reason == Reason::Delete,
            Self::Resume { deleted } => {
                cause.initial && (deleted || cause.reason != Reason::Delete)
            }
            Self::Field | Self::Sub { .. } => true,
        }
    }
}

// === impl HandlerSpec ===

impl HandlerSpec {
    /// A handler without conditions, and with the default policy.
    #[must_use]
    pub fn new(id: impl Into<HandlerId>, trigger: Trigger) -> Self {
        Self {
            id: id.into(),
            trigger,
            filters: Filters::default(),
            policy: RetryPolicy::default(),
        }
    }

    /// A handler of a field; the id consists of both.
    #[must_use]
    pub fn for_field(id: &str, trigger: Trigger, field: FieldPath) -> Self {
        let mut spec = Self::new(HandlerId::of_field(id, &field), trigger);
        spec.filters.field = Some(filter::FieldFilter::any(field));
        spec
    }

    /// The field of a field handler or filter.
    #[must_use]
    pub fn field(&self) -> Option<&FieldPath> {
        self.filters.field.as_ref().map(|field| &field.path)
    }

    /// Whether the filters accept the object as it is, regardless of its change.
    #[must_use]
    pub fn prematches(&self, subject: &Subject<'_>) -> bool {
        self.filters.prematch(subject)
    }

    /// Whether the handler is to be called.
    ///
    /// The subject has no cause for event handlers, daemons, timers and indices.
    #[must_use]
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        match subject.cause {
            Some(cause) => {
                self.trigger.fits(cause)
                    && self.filters.matches(subject, self.trigger.needs_change())
            }
            None => !self.trigger.is_change() && self.filters.prematch(subject),
        }
    }
}
