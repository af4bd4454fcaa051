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
    pub cause: Cause,
    /// Which objects it is called for.
    pub filters: Vec<Filter>,
    /// How failures are treated.
    pub policy: Policy,
    /// What the method is told on every call.
    pub param: Option<serde_json::Value>,
}

/// What a handler is called for.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The object changed in one of these ways.
    Change(ChangeKinds),
    /// One field changed.
    Field {
        /// The field.
        field: FieldPath,
        /// Only in these kinds of changes; any kind if empty.
        within: ChangeKinds,
    },
    /// Anything was seen of the object; perhaps only where it has a certain field.
    Event {
        /// The field that has to be there.
        field: Option<FieldPath>,
    },
    /// The object is there: a task accompanies it.
    Daemon(Daemon),
    /// The object is there: it is looked after from time to time.
    Timer(Timer),
    /// The object was seen: it is found in an index.
    Index(Indexing),
}

/// What belongs to an index alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexing {
    /// The field that has to be there.
    pub field: Option<FieldPath>,
    /// The index that is filled.
    pub index: Index,
}

/// What belongs to a daemon alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// The field that has to be there.
    pub field: Option<FieldPath>,
    /// How long it waits at first.
    pub initial_delay: Option<Delay>,
    /// How long it may take to stop by itself.
    pub cancellation_backoff: Option<Duration>,
    /// How long it may take to be gone when interrupted.
    pub cancellation_timeout: Option<Duration>,
    /// How often it is told that it is still waited for.
    pub cancellation_polling: Option<Duration>,
}

/// What belongs to a timer alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The field that has to be there.
    pub field: Option<FieldPath>,
    /// How long it waits at first.
    pub initial_delay: Option<Delay>,
    /// When it is called.
    pub pace: Pace,
}

/// When a timer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
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
pub enum Delay {
    /// Always as long.
    Fixed(Duration),
    /// As long as the method of this name says.
    Computed(String),
}

/// A set of create, update, delete and resume, with the options that belong to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeKinds {
    /// The kinds of changes.
    pub triggers: BTreeSet<Trigger>,
    /// Deletion does not wait for a delete handler.
    pub optional: bool,
    /// Resume handlers are called for objects that are being deleted, too.
    pub deleted: bool,
}

/// A field of an object, with the type of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// The keys, outermost first.
    pub keys: Vec<String>,
    /// The Rust type of the value.
    pub rust_type: FieldType,
}

/// A Rust type, and where the names in it come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// The type, with simple names: `Vec<Quantity>`.
    pub text: String,
    /// The paths of the names that have to be imported, as seen from the module of the kind.
    pub paths: Vec<String>,
}

/// One condition that an object has to meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// What is looked at.
    pub subject: Subject,
    /// What is expected of it.
    pub expected: Expected,
}

/// What a filter looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
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
pub enum Expected {
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
pub struct Policy {
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
            (Cause::Index(_), _) | (_, None) => self.id.clone(),
            (_, Some(field)) => format!("{}/{field}", self.id),
        }
    }

    /// The field that the handler is about.
    #[must_use]
    pub fn field(&self) -> Option<&FieldPath> {
        match &self.cause {
            Cause::Field { field, .. } => Some(field),
            Cause::Event { field }
            | Cause::Daemon(Daemon { field, .. })
            | Cause::Timer(Timer { field, .. })
            | Cause::Index(Indexing { field, .. }) => field.as_ref(),
            Cause::Change(_) => None,
        }
    }

    /// The method that tells how long a timer or daemon waits at first.
    #[must_use]
    pub fn computed_delay(&self) -> Option<&str> {
        match &self.cause {
            Cause::Daemon(Daemon { initial_delay, .. })
            | Cause::Timer(Timer { initial_delay, .. }) => match initial_delay {
                Some(Delay::Computed(method)) => Some(method),
                Some(Delay::Fixed(_)) | None => None,
            },
            Cause::Change(_) | Cause::Field { .. } | Cause::Event { .. } | Cause::Index(_) => None,
        }
    }

    /// The index that it fills.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        match &self.cause {
            Cause::Index(indexing) => Some(&indexing.index),
            _ => None,
        }
    }

    /// Whether it accompanies objects instead of reacting to them.
    #[must_use]
    pub fn is_background(&self) -> bool {
        matches!(self.cause, Cause::Daemon(_) | Cause::Timer(_))
    }

    /// Whether a finalizer holds objects until this handler is done.
    #[must_use]
    pub fn holds_deletion(&self) -> bool {
        match &self.cause {
            Cause::Change(kinds) | Cause::Field { within: kinds, .. } => {
                kinds.triggers.contains(&Trigger::Delete) && !kinds.optional
            }
            Cause::Event { .. } | Cause::Index(_) => false,
            Cause::Daemon(_) | Cause::Timer(_) => true,
        }
    }

    /// Whether progress and the last state are kept on the object.
    #[must_use]
    pub fn keeps_progress(&self) -> bool {
        matches!(self.cause, Cause::Change(_) | Cause::Field { .. })
    }

    /// Whether it writes to objects for sure, if only a finalizer or a result.
    #[must_use]
    pub fn writes(&self) -> bool {
        !matches!(self.cause, Cause::Event { .. } | Cause::Index(_))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keys.join("."))
    }
}
