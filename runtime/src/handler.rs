//! The declarations of handlers in generated code: their triggers, filters and retry policies.

mod background;
pub(crate) mod error;
pub(crate) mod memo;
pub(crate) mod patch;
pub(crate) mod reconcile;
pub(crate) mod state;
pub(crate) mod webhook;

use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::Subject;
use kopf_core::handler::filter::{
    Combined, FieldFilter, FieldTest, Filters, TextTest, ValueTest, WhenTest,
};
use kopf_core::handler::retry::{ErrorMode, RetryPolicy};
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::object::path::FieldPath;
use serde_json::Value;

pub(crate) use self::background::InitialDelay;
pub use self::background::{DaemonHandler, TimerHandler};
pub use self::reconcile::{ChildHandler, ReconcileHandler, UsedBy};
use crate::handler::patch::field_path;

/// The triggers of a change handler; it may have several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct On {
    triggers: Vec<Trigger>,
}

/// The options of all handlers.
#[derive(Debug, Clone, Default)]
struct Options {
    filters: Filters,
    policy: RetryPolicy,
    param: Option<Arc<Value>>,
}

/// A handler of creations, updates, deletions or resumptions of objects.
#[derive(Debug, Clone)]
#[must_use]
pub struct ChangeHandler {
    id: &'static str,
    on: On,
    options: Options,
}

/// A handler of one field. By default, it is called for every change of the field.
#[derive(Debug, Clone)]
#[must_use]
pub struct FieldHandler {
    id: &'static str,
    field: &'static str,
    on: On,
    options: Options,
}

/// A handler of all watch events of objects, which keeps no progress on them.
///
/// By default it is called once for each event. With [`retries`](Self::retries), or with
/// [`errors(ErrorMode::Temporary)`](Self::errors), a call that failed is repeated with the same
/// event: in memory, until the handler is called for a newer event of the object, or until the
/// operator stops or pauses.
#[derive(Debug, Clone)]
#[must_use]
pub struct EventHandler {
    id: &'static str,
    options: Options,
    /// None: as Kopf does, errors are logged, and that is all.
    errors: Option<ErrorMode>,
}

/// An index function: it returns the keys and values of an object in an index.
#[derive(Debug, Clone)]
#[must_use]
pub struct IndexHandler {
    options: Options,
}

/// A part of a change handler, which registers it while it runs.
#[derive(Debug, Clone)]
#[must_use]
pub struct SubHandler {
    id: String,
    options: Options,
}

/// A handler as the runtime keeps it: one specification per trigger.
pub(crate) struct HandlerDeclaration {
    pub(crate) specs: Vec<HandlerSpec>,
    pub(crate) param: Option<Arc<Value>>,
}

// === impl On ===

impl On {
    /// The object was created.
    #[must_use]
    pub fn create() -> Self {
        Self::one(Trigger::Create)
    }

    /// The object was changed.
    #[must_use]
    pub fn update() -> Self {
        Self::one(Trigger::Update)
    }

    /// The object is being deleted. A finalizer holds it until the handler is done.
    #[must_use]
    pub fn delete() -> Self {
        Self::one(Trigger::Delete { optional: false })
    }

    /// The object is being deleted. The handler needs no finalizer: it is called only if another
    /// handler, daemon or timer holds the object.
    #[must_use]
    pub fn optional_delete() -> Self {
        Self::one(Trigger::Delete { optional: true })
    }

    /// The operator started and found the object.
    #[must_use]
    pub fn resume() -> Self {
        Self::one(Trigger::Resume { deleted: false })
    }

    /// The operator started and found the object, even if it is being deleted.
    #[must_use]
    pub fn resume_deleted() -> Self {
        Self::one(Trigger::Resume { deleted: true })
    }

    /// These triggers and others.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        for trigger in other.triggers {
            if !self.triggers.contains(&trigger) {
                self.triggers.push(trigger);
            }
        }
        self
    }

    fn one(trigger: Trigger) -> Self {
        Self {
            triggers: vec![trigger],
        }
    }
}

/// The option methods of every type of handler.
macro_rules! options {
    ($handler:ident) => {
        impl $handler {
            /// Only objects whose label passes the test; all filters must match.
            pub fn label(mut self, key: &str, test: impl Into<Combined<TextTest>>) -> Self {
                let labels = &mut self.options.filters.labels;
                labels.push((key.to_owned(), test.into()));
                self
            }

            /// Only objects whose annotation passes the test; all filters must match.
            pub fn annotation(mut self, key: &str, test: impl Into<Combined<TextTest>>) -> Self {
                let annotations = &mut self.options.filters.annotations;
                annotations.push((key.to_owned(), test.into()));
                self
            }

            /// Only objects for which the condition holds.
            pub fn when(
                self,
                condition: impl Fn(&Subject<'_>) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.when_combined(WhenTest::new(condition).into())
            }

            /// Only objects for which the combination of conditions holds.
            pub fn when_combined(mut self, conditions: Combined<WhenTest>) -> Self {
                self.options.filters.when = Some(conditions);
                self
            }

            /// The maximum number of attempts.
            pub fn retries(mut self, retries: u32) -> Self {
                self.options.policy.retries = Some(retries);
                self
            }

            /// The time for all attempts together. The runtime cancels an attempt that runs when it
            /// ends.
            pub fn timeout(mut self, timeout: Duration) -> Self {
                self.options.policy.timeout = Some(timeout);
                self
            }

            /// The delay after an error that has none of its own.
            pub fn backoff(mut self, backoff: Duration) -> Self {
                self.options.policy.backoff = Some(backoff);
                self
            }

            /// A value for the handler, which it reads with `cx.param()`.
            pub fn param(mut self, param: impl Into<Value>) -> Self {
                self.options.param = Some(Arc::new(param.into()));
                self
            }
        }
    };
}

/// The treatment of errors, for all handlers but event handlers.
macro_rules! error_option {
    ($handler:ident) => {
        impl $handler {
            /// Sets how arbitrary errors are treated: those that are neither temporary nor permanent.
            pub fn errors(mut self, mode: ErrorMode) -> Self {
                self.options.policy.errors = mode;
                self
            }
        }
    };
}

use {error_option, options};

options!(ChangeHandler);
options!(FieldHandler);
options!(EventHandler);
options!(IndexHandler);
options!(SubHandler);

error_option!(ChangeHandler);
error_option!(FieldHandler);
error_option!(IndexHandler);
error_option!(SubHandler);

// === impl ChangeHandler ===

impl ChangeHandler {
    /// A handler with this id, under which its progress is kept on objects.
    pub fn new(id: &'static str, on: On) -> Self {
        Self {
            id,
            on,
            options: Options::default(),
        }
    }

    /// Only if the object has this field; for updates, only if the field changed.
    pub fn field(self, path: &str) -> Self {
        self.field_test(path, FieldTest::Any)
    }

    /// Only if the value of this field passes the test, before or after the change.
    pub fn value(self, path: &str, test: impl Into<Combined<ValueTest>>) -> Self {
        self.field_test(path, FieldTest::Value(test.into()))
    }

    /// Only if this field changed from an old to a new value that pass the tests.
    pub fn transition(
        self,
        path: &str,
        old: Option<Combined<ValueTest>>,
        new: Option<Combined<ValueTest>>,
    ) -> Self {
        self.field_test(path, FieldTest::Transition { old, new })
    }

    pub(crate) fn declare(self) -> HandlerDeclaration {
        let id = match &self.options.filters.field {
            Some(field) => HandlerId::of_field(self.id, &field.path),
            None => HandlerId::new(self.id),
        };
        self.options.declare(&id, &self.on.triggers)
    }

    fn field_test(mut self, path: &str, test: FieldTest) -> Self {
        let path = field_path(path);
        self.options.filters.field = Some(FieldFilter { path, test });
        self
    }
}

// === impl FieldHandler ===

impl FieldHandler {
    /// A handler of a field by its path, e.g. `spec.size`.
    pub fn new(id: &'static str, field: &'static str) -> Self {
        let mut options = Options::default();
        options.filters.field = Some(FieldFilter::any(field_path(field)));
        Self {
            id,
            field,
            on: On::one(Trigger::Field),
            options,
        }
    }

    /// Only for these triggers. The field must have changed for updates, but not for the others.
    pub fn on(mut self, on: On) -> Self {
        self.on = on;
        self
    }

    /// Only if the value of the field passes the test, before or after the change.
    pub fn value(self, test: impl Into<Combined<ValueTest>>) -> Self {
        self.field_test(FieldTest::Value(test.into()))
    }

    /// Only if the field changed from an old to a new value that pass the tests.
    pub fn transition(
        self,
        old: Option<Combined<ValueTest>>,
        new: Option<Combined<ValueTest>>,
    ) -> Self {
        self.field_test(FieldTest::Transition { old, new })
    }

    fn path(&self) -> FieldPath {
        field_path(self.field)
    }

    pub(crate) fn declare(self) -> HandlerDeclaration {
        let id = HandlerId::of_field(self.id, &self.path());
        self.options.declare(&id, &self.on.triggers)
    }

    fn field_test(mut self, test: FieldTest) -> Self {
        let path = self.path();
        self.options.filters.field = Some(FieldFilter { path, test });
        self
    }
}

// === impl EventHandler ===

impl EventHandler {
    /// A handler with this id.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            options: Options::default(),
            errors: None,
        }
    }

    /// Sets how arbitrary errors are treated: those that are neither temporary nor permanent.
    pub fn errors(mut self, mode: ErrorMode) -> Self {
        self.errors = Some(mode);
        self
    }

    /// Only if the value of this field passes the test.
    pub fn value(mut self, path: &str, test: impl Into<Combined<ValueTest>>) -> Self {
        self.options.filters.field = Some(FieldFilter {
            path: field_path(path),
            test: FieldTest::Value(test.into()),
        });
        self
    }

    pub(crate) fn declare(mut self) -> HandlerDeclaration {
        let id = match &self.options.filters.field {
            Some(field) => HandlerId::of_field(self.id, &field.path),
            None => HandlerId::new(self.id),
        };
        let policy = &mut self.options.policy;
        let is_repeated = policy.retries.is_some() || self.errors == Some(ErrorMode::Temporary);
        if !is_repeated {
            policy.retries = Some(1);
        }
        policy.errors = match self.errors {
            Some(mode) => mode,
            None if is_repeated => ErrorMode::Temporary,
            None => ErrorMode::Ignored,
        };
        self.options.declare(&id, &[Trigger::Event])
    }
}

// === impl IndexHandler ===

impl IndexHandler {
    /// An index function for all objects of the kind.
    pub fn new() -> Self {
        let mut options = Options::default();
        options.policy.errors = ErrorMode::Ignored;
        Self { options }
    }

    /// Only objects in which the value of this field passes the test.
    pub fn value(mut self, path: &str, test: impl Into<Combined<ValueTest>>) -> Self {
        self.options.filters.field = Some(FieldFilter {
            path: field_path(path),
            test: FieldTest::Value(test.into()),
        });
        self
    }

    pub(crate) fn declare(self, name: &str) -> HandlerDeclaration {
        let id = HandlerId::new(name);
        self.options.declare(&id, &[Trigger::Index])
    }
}

impl Default for IndexHandler {
    fn default() -> Self {
        Self::new()
    }
}

// === impl SubHandler ===

impl SubHandler {
    /// A sub-handler with an id that is unique within its handler.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            options: Options::default(),
        }
    }

    /// Only if the object has this field. If the handler is about changes, the field must have
    /// changed.
    ///
    /// The path begins at the object, also below a handler with a field of its own.
    pub fn field(self, path: &str) -> Self {
        self.field_test(path, FieldTest::Any)
    }

    /// Only if the value of this field passes the test, before or after the change.
    pub fn value(self, path: &str, test: impl Into<Combined<ValueTest>>) -> Self {
        self.field_test(path, FieldTest::Value(test.into()))
    }

    /// Only if the old and the new value of this field pass the tests.
    pub fn transition(
        self,
        path: &str,
        old: Option<Combined<ValueTest>>,
        new: Option<Combined<ValueTest>>,
    ) -> Self {
        self.field_test(path, FieldTest::Transition { old, new })
    }

    fn field_test(mut self, path: &str, test: FieldTest) -> Self {
        let path = field_path(path);
        self.options.filters.field = Some(FieldFilter { path, test });
        self
    }

    pub(crate) fn parameter(&self) -> Option<Arc<Value>> {
        self.options.param.clone()
    }

    pub(crate) fn declare(self, parent: &HandlerId, trigger: Trigger) -> HandlerSpec {
        HandlerSpec {
            id: parent.sub(&self.id),
            trigger,
            filters: self.options.filters,
            policy: self.options.policy,
        }
    }
}

// === impl Options ===

impl Options {
    fn declare(self, id: &HandlerId, triggers: &[Trigger]) -> HandlerDeclaration {
        let specs = triggers.iter().map(|&trigger| HandlerSpec {
            id: id.clone(),
            trigger,
            filters: self.filters.clone(),
            policy: self.policy,
        });
        HandlerDeclaration {
            specs: specs.collect(),
            param: self.param.clone(),
        }
    }
}
