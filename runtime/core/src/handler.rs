//! Declared handlers: their identity, what triggers them, and under which conditions.

pub mod filter;
pub mod finalizer_need;
pub mod registry;
pub mod retry;
pub mod selector;

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::{
    cause::{Cause, Reason, Subject},
    handler::{filter::Filters, retry::RetryPolicy},
    object::path::FieldPath,
};

/// The identity of a handler, stable over releases, since objects carry it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(Arc<str>);

/// What calls a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// Every event of the object, without any record.
    Event,
    /// The object was created.
    Create,
    /// The object was changed.
    Update,
    /// The object is being deleted.
    Delete {
        /// Whether the object may go without waiting for this handler.
        optional: bool,
    },
    /// The operator started and found the object.
    Resume {
        /// Whether it is called for objects that are being deleted, too.
        deleted: bool,
    },
    /// The field changed, for whatever reason.
    Field,
    /// The parent handler runs.
    Sub {
        /// Whether a field of it must have changed, as it must for the parent.
        changing: bool,
    },
    /// The object exists: a task accompanies it.
    Daemon,
    /// The object exists: it is looked after from time to time.
    Timer,
    /// The object was seen: it is found by what it holds.
    Index,
}

/// A declared handler, without its function.
#[derive(Clone, Debug)]
pub struct HandlerSpec {
    /// Its identity.
    pub id: HandlerId,
    /// What calls it.
    pub trigger: Trigger,
    /// When it is called.
    pub filters: Filters,
    /// What happens when it fails.
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
    /// Whether handlers of this trigger take part in handling cycles.
    #[must_use]
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Event | Self::Daemon | Self::Timer | Self::Index)
    }

    /// Whether handlers of this trigger accompany objects instead of reacting to them.
    #[must_use]
    pub fn is_background(self) -> bool {
        matches!(self, Self::Daemon | Self::Timer)
    }

    /// Whether an object must not go before the handler is done with it.
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

    /// Whether handlers of this trigger are called for this cause, filters aside.
    #[must_use]
    pub fn fits(self, cause: &Cause<'_>) -> bool {
        match self {
            Self::Event | Self::Daemon | Self::Timer | Self::Index => false,
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

    /// A handler of a field, with the id made of both.
    #[must_use]
    pub fn for_field(id: &str, trigger: Trigger, field: FieldPath) -> Self {
        let mut spec = Self::new(HandlerId::of_field(id, &field), trigger);
        spec.filters.field = Some(filter::FieldFilter::any(field));
        spec
    }

    /// The field that it is about, if it is about one.
    #[must_use]
    pub fn field(&self) -> Option<&FieldPath> {
        self.filters.field.as_ref().map(|field| &field.path)
    }

    /// Whether the handler could ever be called for the object as it is, reasons aside.
    #[must_use]
    pub fn prematches(&self, subject: &Subject<'_>) -> bool {
        self.filters.prematch(subject)
    }

    /// Whether the handler is to be called.
    ///
    /// For event handlers, daemons, timers and indices the subject has no cause.
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
