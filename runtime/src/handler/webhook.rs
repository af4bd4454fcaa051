//! The declarations of webhooks in generated code.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::admission::{
    ConfigurationLifetime, FailurePolicy, LONGEST_TIMEOUT, Operation, SideEffects, WebhookEndpoint,
    WebhookRole, WebhookSpec,
};
use kopf_core::cause::Subject;
use kopf_core::handler::HandlerId;
use kopf_core::handler::filter::{Combined, FieldFilter, FieldTest, TextTest, ValueTest, WhenTest};
use serde_json::Value;

use crate::handler::patch::field_path;

/// A webhook that the API server calls before it stores an object.
#[derive(Debug, Clone)]
#[must_use]
pub struct WebhookHandler {
    id: &'static str,
    spec: WebhookSpec,
    param: Option<Arc<Value>>,
}

impl WebhookHandler {
    /// A webhook with this id, for every operation on the objects themselves.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            spec: WebhookSpec::new(id, WebhookRole::Validating),
            param: None,
        }
    }

    /// Only for these operations.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.spec.operations = operations.into_iter().collect();
        self
    }

    /// For this subresource instead of the object itself.
    pub fn subresource(mut self, name: &str) -> Self {
        self.spec.endpoint = WebhookEndpoint::Subresource(name.to_owned());
        self
    }

    /// For the object and all of its subresources.
    pub fn all_subresources(mut self) -> Self {
        self.spec.endpoint = WebhookEndpoint::All;
        self
    }

    /// The webhook has side effects, except in a dry run.
    pub fn side_effects(mut self) -> Self {
        self.spec.side_effects = SideEffects::NoneOnDryRun;
        self
    }

    /// Requests are allowed if the webhook cannot be reached or fails other than by a denial.
    pub fn ignore_failures(mut self) -> Self {
        self.spec.on_failure = FailurePolicy::Ignore;
        self
    }

    /// The webhook stays configured when the operator stops, so that no request bypasses it.
    pub fn persistent(mut self) -> Self {
        self.spec.lifetime = ConfigurationLifetime::Persistent;
        self
    }

    /// How long the API server waits for an answer, in whole seconds from 1 to 30.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = timeout.clamp(Duration::from_secs(1), LONGEST_TIMEOUT);
        self
    }

    /// Only objects whose label passes the test; all filters must match.
    pub fn label(mut self, key: &str, test: impl Into<Combined<TextTest>>) -> Self {
        let labels = &mut self.spec.filters.labels;
        labels.push((key.to_owned(), test.into()));
        self
    }

    /// Only objects whose annotation passes the test; all filters must match.
    pub fn annotation(mut self, key: &str, test: impl Into<Combined<TextTest>>) -> Self {
        let annotations = &mut self.spec.filters.annotations;
        annotations.push((key.to_owned(), test.into()));
        self
    }

    /// Only objects for which the condition holds.
    pub fn when(self, condition: impl Fn(&Subject<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.when_combined(WhenTest::new(condition).into())
    }

    /// Only objects for which the combination of conditions holds.
    pub fn when_combined(mut self, conditions: Combined<WhenTest>) -> Self {
        self.spec.filters.when = Some(conditions);
        self
    }

    /// Only if the object has this field, before or after the request.
    pub fn field(self, path: &str) -> Self {
        self.field_test(path, FieldTest::Any)
    }

    /// Only if the value of this field passes the test, before or after the request.
    pub fn value(self, path: &str, test: impl Into<Combined<ValueTest>>) -> Self {
        self.field_test(path, FieldTest::Value(test.into()))
    }

    /// Only if this field changes from an old to a new value that pass the tests.
    pub fn transition(
        self,
        path: &str,
        old: Option<Combined<ValueTest>>,
        new: Option<Combined<ValueTest>>,
    ) -> Self {
        self.field_test(path, FieldTest::Transition { old, new })
    }

    /// A value for the webhook, which it reads with `cx.param()`.
    pub fn param(mut self, param: impl Into<Value>) -> Self {
        self.param = Some(Arc::new(param.into()));
        self
    }

    pub(crate) fn declare(mut self, role: WebhookRole) -> (WebhookSpec, Option<Arc<Value>>) {
        self.spec.role = role;
        self.spec.id = match &self.spec.filters.field {
            Some(field) => HandlerId::of_field(self.id, &field.path),
            None => HandlerId::new(self.id),
        };
        (self.spec, self.param)
    }

    fn field_test(mut self, path: &str, test: FieldTest) -> Self {
        let path = field_path(path);
        self.spec.filters.field = Some(FieldFilter { path, test });
        self
    }
}
