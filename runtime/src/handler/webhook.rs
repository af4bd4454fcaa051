//! How generated code declares webhooks: what they are asked about, and how.

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

/// A function that the API server asks before it stores an object.
#[derive(Debug, Clone)]
#[must_use]
pub struct WebhookHandler {
    id: &'static str,
    spec: WebhookSpec,
    param: Option<Arc<Value>>,
}

impl WebhookHandler {
    /// A webhook with its id, asked about every operation on the objects themselves.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            spec: WebhookSpec::new(id, WebhookRole::Validating),
            param: None,
        }
    }

    /// Only about these operations.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.spec.operations = operations.into_iter().collect();
        self
    }

    /// About this subresource instead of the object itself.
    pub fn subresource(mut self, name: &str) -> Self {
        self.spec.endpoint = WebhookEndpoint::Subresource(name.to_owned());
        self
    }

    /// About the object and all of its subresources.
    pub fn all_subresources(mut self) -> Self {
        self.spec.endpoint = WebhookEndpoint::All;
        self
    }

    /// It does more than answering, except in a dry run.
    pub fn side_effects(mut self) -> Self {
        self.spec.side_effects = SideEffects::NoneOnDryRun;
        self
    }

    /// Requests pass when it cannot be asked, or fails other than by a denial.
    pub fn ignore_failures(mut self) -> Self {
        self.spec.on_failure = FailurePolicy::Ignore;
        self
    }

    /// It stays configured when the operator stops, so that nothing passes unseen.
    pub fn persistent(mut self) -> Self {
        self.spec.lifetime = ConfigurationLifetime::Persistent;
        self
    }

    /// How long the API server waits for it, in whole seconds from 1 to 30.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = timeout.clamp(Duration::from_secs(1), LONGEST_TIMEOUT);
        self
    }

    /// Only objects with this label; all such conditions must hold.
    pub fn label(mut self, key: &str, test: impl Into<Combined<TextTest>>) -> Self {
        let labels = &mut self.spec.filters.labels;
        labels.push((key.to_owned(), test.into()));
        self
    }

    /// Only objects with this annotation; all such conditions must hold.
    pub fn annotation(mut self, key: &str, test: impl Into<Combined<TextTest>>) -> Self {
        let annotations = &mut self.spec.filters.annotations;
        annotations.push((key.to_owned(), test.into()));
        self
    }

    /// Only if the condition on the whole object holds.
    pub fn when(
        mut self,
        condition: impl Fn(&Subject<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let condition = WhenTest(Arc::new(condition));
        self.spec.filters.when = Some(Combined::One(condition));
        self
    }

    /// Only if this field is there, before or after the request.
    pub fn field(self, path: &str) -> Self {
        self.field_test(path, FieldTest::Any)
    }

    /// Only if this field has this value, before or after the request.
    pub fn value(self, path: &str, test: impl Into<Combined<ValueTest>>) -> Self {
        self.field_test(path, FieldTest::Value(test.into()))
    }

    /// Only if this field changes from the one to the other.
    pub fn transition(
        self,
        path: &str,
        old: Option<Combined<ValueTest>>,
        new: Option<Combined<ValueTest>>,
    ) -> Self {
        self.field_test(path, FieldTest::Transition { old, new })
    }

    /// Anything for the webhook to know.
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
