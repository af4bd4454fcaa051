//! Handlers as the generated code needs them: every name decided, every type known.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use super::index::Index;
use crate::load::manifest::{ErrorMode, Trigger};

/// One method of a kind's trait, and what it is wired to.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// The id that live objects carry, without the field that is appended to it.
    pub id: String,
    /// The method.
    pub method: String,
    /// What it is called for.
    pub cause: HandlerCause,
    /// Which objects it is called for.
    pub filters: Vec<HandlerFilter>,
    /// How failures are treated.
    pub retry: RetryOptions,
    /// What the method is told on every call.
    pub param: Option<serde_json::Value>,
}

/// What a handler is called for.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerCause {
    /// The object changed in one of these ways.
    Change(ChangeTriggers),
    /// One field changed.
    Field {
        /// The field.
        field: TypedField,
        /// Only in these kinds of changes; any kind if empty.
        within: ChangeTriggers,
    },
    /// Anything was seen of the object; perhaps only where it has a certain field.
    Event {
        /// The field that has to be there.
        field: Option<TypedField>,
    },
    /// The object is there: a task accompanies it.
    Daemon(DaemonOptions),
    /// The object is there: it is looked after from time to time.
    Timer(TimerOptions),
    /// The object was seen: it is found in an index.
    Index(IndexOptions),
}

/// What belongs to an index alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// The field that has to be there.
    pub field: Option<TypedField>,
    /// The index that is filled.
    pub index: Index,
}

/// What belongs to a daemon alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonOptions {
    /// The field that has to be there.
    pub field: Option<TypedField>,
    /// How long it waits at first.
    pub initial_delay: Option<StartDelay>,
    /// How long it may take to stop by itself.
    pub cancellation_backoff: Option<Duration>,
    /// How long it may take to be gone when interrupted.
    pub cancellation_timeout: Option<Duration>,
    /// How often it is told that it is still waited for.
    pub cancellation_polling: Option<Duration>,
}

/// What belongs to a timer alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerOptions {
    /// The field that has to be there.
    pub field: Option<TypedField>,
    /// How long it waits at first.
    pub initial_delay: Option<StartDelay>,
    /// When it is called.
    pub schedule: TimerSchedule,
}

/// When a timer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerSchedule {
    /// Again and again.
    Every {
        /// The pause between two calls.
        interval: Duration,
        /// The pause is counted from call to call.
        sharp: bool,
        /// How long the object must have been unchanged.
        idle: Option<Duration>,
    },
    /// Once whenever the object has been unchanged for so long.
    Idle(Duration),
}

/// How long a timer or daemon waits before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartDelay {
    /// Always as long.
    Fixed(Duration),
    /// As long as the method of this name says.
    Computed(String),
}

/// A set of create, update, delete and resume, with the options that belong to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeTriggers {
    /// The kinds of changes.
    pub triggers: BTreeSet<Trigger>,
    /// Deletion does not wait for a delete handler.
    pub optional: bool,
    /// Resume handlers are called for objects that are being deleted, too.
    pub deleted: bool,
}

/// A field of an object, with the type of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedField {
    /// The keys, outermost first.
    pub keys: Vec<String>,
    /// The Rust type of the value.
    pub rust_type: ImportedType,
}

/// A Rust type, and where the names in it come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedType {
    /// The type, with simple names: `Vec<Quantity>`.
    pub text: String,
    /// The paths of the names that have to be imported, as seen from the module of the kind.
    pub paths: Vec<String>,
}

/// One condition that an object has to meet.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerFilter {
    /// What is looked at.
    pub subject: FilterSubject,
    /// What is expected of it.
    pub expected: FilterTest,
}

/// What a filter looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterSubject {
    /// The label of this name.
    Label(String),
    /// The annotation of this name.
    Annotation(String),
    /// The value of the handler's field.
    Value,
    /// The value that the field had.
    Old,
    /// The value that the field has now.
    New,
    /// The whole object.
    Object,
}

/// What a filter expects.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterTest {
    /// Anything, as long as it is there.
    Present,
    /// Nothing.
    Absent,
    /// This value.
    Equals(serde_json::Value),
    /// What the predicate of this name accepts.
    Predicate(String),
}

/// How failures are treated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryOptions {
    /// What an error means that says nothing about retrying.
    pub errors: Option<ErrorMode>,
    /// How long to keep trying.
    pub timeout: Option<Duration>,
    /// How many attempts are made.
    pub retries: Option<u32>,
    /// How long to wait between attempts.
    pub backoff: Option<Duration>,
}

// === impl Handler ===

impl Handler {
    /// The id as live objects carry it: with the field of a field handler.
    #[must_use]
    pub fn full_id(&self) -> String {
        match (&self.cause, self.field()) {
            (HandlerCause::Index(_), _) | (_, None) => self.id.clone(),
            (_, Some(field)) => format!("{}/{field}", self.id),
        }
    }

    /// The field that the handler is about.
    #[must_use]
    pub fn field(&self) -> Option<&TypedField> {
        match &self.cause {
            HandlerCause::Field { field, .. } => Some(field),
            HandlerCause::Event { field }
            | HandlerCause::Daemon(DaemonOptions { field, .. })
            | HandlerCause::Timer(TimerOptions { field, .. })
            | HandlerCause::Index(IndexOptions { field, .. }) => field.as_ref(),
            HandlerCause::Change(_) => None,
        }
    }

    /// The method that tells how long a timer or daemon waits at first.
    #[must_use]
    pub fn computed_delay(&self) -> Option<&str> {
        match &self.cause {
            HandlerCause::Daemon(DaemonOptions { initial_delay, .. })
            | HandlerCause::Timer(TimerOptions { initial_delay, .. }) => match initial_delay {
                Some(StartDelay::Computed(method)) => Some(method),
                Some(StartDelay::Fixed(_)) | None => None,
            },
            HandlerCause::Change(_)
            | HandlerCause::Field { .. }
            | HandlerCause::Event { .. }
            | HandlerCause::Index(_) => None,
        }
    }

    /// The index that it fills.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        match &self.cause {
            HandlerCause::Index(indexing) => Some(&indexing.index),
            _ => None,
        }
    }

    /// Whether it accompanies objects instead of reacting to them.
    #[must_use]
    pub fn is_background(&self) -> bool {
        matches!(self.cause, HandlerCause::Daemon(_) | HandlerCause::Timer(_))
    }

    /// Whether a finalizer holds objects until this handler is done.
    #[must_use]
    pub fn holds_deletion(&self) -> bool {
        match &self.cause {
            HandlerCause::Change(change) | HandlerCause::Field { within: change, .. } => {
                change.triggers.contains(&Trigger::Delete) && !change.optional
            }
            HandlerCause::Event { .. } | HandlerCause::Index(_) => false,
            HandlerCause::Daemon(_) | HandlerCause::Timer(_) => true,
        }
    }

    /// Whether progress and the last state are kept on the object.
    #[must_use]
    pub fn keeps_progress(&self) -> bool {
        matches!(
            self.cause,
            HandlerCause::Change(_) | HandlerCause::Field { .. }
        )
    }

    /// Whether it writes to objects for sure, if only a finalizer or a result.
    #[must_use]
    pub fn writes(&self) -> bool {
        !matches!(
            self.cause,
            HandlerCause::Event { .. } | HandlerCause::Index(_)
        )
    }
}

impl fmt::Display for TypedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keys.join("."))
    }
}
