//! The handlers of a kind, with all names chosen and all types resolved.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use kopf_core::handler::filter::Combined;
use kopf_core::object::path::FieldPath;

use super::index::Index;
use super::param::Param;
use crate::load::manifest::{ErrorMode, Trigger};
use crate::rust::{RustPath, RustType};

/// One method of a kind's trait, and when the runtime calls it.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// The id that is stored on objects, without the suffix for the field.
    pub id: String,
    /// The method.
    pub method: String,
    /// The occasion on which it is called.
    pub cause: HandlerCause,
    /// Which objects it is called for.
    pub filters: Vec<HandlerFilter>,
    /// The treatment of failures.
    pub retry: RetryOptions,
    /// The value that every call receives.
    pub param: Option<Param>,
    /// The type of the result; none if it returns nothing.
    pub result: Option<RustType>,
}

/// The occasion on which a handler is called.
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
    /// The API server sent any watch event about the object.
    Event {
        /// Only objects that have this field.
        field: Option<TypedField>,
    },
    /// The object exists: a task runs for it.
    Daemon(DaemonOptions),
    /// The object exists: the handler is called at intervals.
    Timer(TimerOptions),
    /// The object was listed or changed: its entries in an index are computed.
    Index(IndexOptions),
    /// The object, or what it owns or uses, may not be as it should be.
    Reconcile(ReconcileTimes),
    /// A child of the object was changed, appeared or is gone.
    Child(ChildCause),
}

/// The times of `reconcile` beside those that every one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconcileTimes {
    /// This long after the last call.
    pub interval: Option<Duration>,
    /// When only the status of the object has changed.
    pub status: bool,
}

/// The children that a handler is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildCause {
    /// Their kind.
    pub kind: String,
    /// The path of their type.
    pub object: RustPath,
}

/// The options of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Only objects that have this field.
    pub field: Option<TypedField>,
    /// The index that is filled.
    pub index: Index,
}

/// The options of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonOptions {
    /// Only objects that have this field.
    pub field: Option<TypedField>,
    /// The delay before the first call.
    pub initial_delay: Option<StartDelay>,
    /// The time it has to stop by itself.
    pub cancellation_backoff: Option<Duration>,
    /// The time it has to end after it was cancelled.
    pub cancellation_timeout: Option<Duration>,
    /// The interval at which the runtime logs that it still waits for the daemon.
    pub cancellation_polling: Option<Duration>,
}

/// The options of a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerOptions {
    /// Only objects that have this field.
    pub field: Option<TypedField>,
    /// The delay before the first call.
    pub initial_delay: Option<StartDelay>,
    /// The times of the calls.
    pub schedule: TimerSchedule,
}

/// The times at which a timer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerSchedule {
    /// At an interval.
    Every {
        /// The time between two calls.
        interval: Duration,
        /// The interval is measured from start to start instead of from end to start.
        sharp: bool,
        /// Only while the object has been unchanged for this long.
        idle: Option<Duration>,
    },
    /// Once each time the object has been unchanged for this long.
    Idle(Duration),
}

/// The delay before a timer or daemon starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartDelay {
    /// A constant.
    Fixed(Duration),
    /// The result of the method of this name.
    Computed(String),
}

/// A set of create, update, delete and resume, with the options that belong to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeTriggers {
    /// The kinds of changes.
    pub triggers: BTreeSet<Trigger>,
    /// No finalizer is added for a delete handler.
    pub optional: bool,
    /// Resume handlers are also called for objects that are being deleted.
    pub deleted: bool,
}

/// A field of an object, with the type of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedField {
    /// The keys, outermost first.
    pub keys: Vec<String>,
    /// The Rust type of the value.
    pub rust_type: RustType,
}

/// One condition on the objects for which a handler is called.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerFilter {
    /// The part of the object that is tested.
    pub subject: FilterSubject,
    /// The tests.
    pub expected: Combined<FilterTest>,
}

/// The part of an object that a filter tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterSubject {
    /// The label of this name.
    Label(String),
    /// The annotation of this name.
    Annotation(String),
    /// The value of the handler's field.
    Value,
    /// The old value of the field.
    Old,
    /// The new value of the field.
    New,
    /// The whole object.
    Object,
}

/// The test of a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterTest {
    /// It is present.
    Present,
    /// It is absent.
    Absent,
    /// It has this value.
    Equals(serde_json::Value),
    /// The predicate returns true.
    Predicate(Predicate),
}

/// A method that decides about a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// The method.
    pub method: String,
    /// The `param` of the handler, in the type in which the method takes it; none if a handler that
    /// uses the method has none, or another one.
    pub param: Option<Param>,
}

/// The treatment of failures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryOptions {
    /// The meaning of an error that does not say whether to retry.
    pub errors: Option<ErrorMode>,
    /// The time after which retrying ends.
    pub timeout: Option<Duration>,
    /// The number of attempts.
    pub retries: Option<u32>,
    /// The time between attempts.
    pub backoff: Option<Duration>,
}

// === impl Predicate ===

impl Predicate {
    /// A method that takes no parameter.
    #[must_use]
    pub fn new(method: String) -> Self {
        Self {
            method,
            param: None,
        }
    }
}

// === impl HandlerFilter ===

impl HandlerFilter {
    /// The predicates among the tests.
    pub fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        let tests = self.expected.conditions().into_iter();
        tests.filter_map(|test| match test {
            FilterTest::Predicate(predicate) => Some(predicate),
            FilterTest::Present | FilterTest::Absent | FilterTest::Equals(_) => None,
        })
    }
}

// === impl Handler ===

impl Handler {
    /// The id that is stored on objects, with the field of a field handler.
    #[must_use]
    pub fn full_id(&self) -> String {
        match (&self.cause, self.field()) {
            (HandlerCause::Index(_), _) | (_, None) => self.id.clone(),
            (_, Some(field)) => format!("{}/{field}", self.id),
        }
    }

    /// The field of the handler.
    #[must_use]
    pub fn field(&self) -> Option<&TypedField> {
        match &self.cause {
            HandlerCause::Field { field, .. } => Some(field),
            HandlerCause::Event { field }
            | HandlerCause::Daemon(DaemonOptions { field, .. })
            | HandlerCause::Timer(TimerOptions { field, .. })
            | HandlerCause::Index(IndexOptions { field, .. }) => field.as_ref(),
            HandlerCause::Change(_) | HandlerCause::Reconcile(_) | HandlerCause::Child(_) => None,
        }
    }

    /// The method that computes the initial delay of a timer or daemon.
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
            | HandlerCause::Index(_)
            | HandlerCause::Reconcile(_)
            | HandlerCause::Child(_) => None,
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

    /// Whether it brings about what the object asks for.
    #[must_use]
    pub fn is_reconcile(&self) -> bool {
        matches!(self.cause, HandlerCause::Reconcile(_))
    }

    /// Whether it is called for children of the object.
    #[must_use]
    pub fn is_of_children(&self) -> bool {
        matches!(self.cause, HandlerCause::Child(_))
    }

    /// Whether it is a timer or a daemon.
    #[must_use]
    pub fn is_background(&self) -> bool {
        matches!(self.cause, HandlerCause::Daemon(_) | HandlerCause::Timer(_))
    }

    /// Whether it needs a finalizer on objects.
    #[must_use]
    pub fn holds_deletion(&self) -> bool {
        match &self.cause {
            HandlerCause::Change(change) | HandlerCause::Field { within: change, .. } => {
                change.triggers.contains(&Trigger::Delete) && !change.optional
            }
            HandlerCause::Event { .. }
            | HandlerCause::Index(_)
            | HandlerCause::Reconcile(_)
            | HandlerCause::Child(_) => false,
            HandlerCause::Daemon(_) | HandlerCause::Timer(_) => true,
        }
    }

    /// Whether the runtime keeps its progress and the last handled state on objects.
    #[must_use]
    pub fn keeps_progress(&self) -> bool {
        matches!(
            self.cause,
            HandlerCause::Change(_) | HandlerCause::Field { .. }
        )
    }

    /// Whether the runtime writes to objects for it: progress, a finalizer or a result.
    #[must_use]
    pub fn writes(&self) -> bool {
        !matches!(
            self.cause,
            HandlerCause::Event { .. } | HandlerCause::Index(_)
        )
    }
}

impl TypedField {
    /// The path as the runtime reads it: keys with dots are in brackets.
    #[must_use]
    pub fn quoted(&self) -> String {
        FieldPath::new(self.keys.iter().map(String::as_str)).quoted()
    }
}

impl fmt::Display for TypedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keys.join("."))
    }
}
