//! Admission webhooks: their declarations, and the requests that each one reviews.

pub mod certificate;
pub mod configuration;
pub mod local_cluster;
pub mod review;
pub mod rotation;
pub mod serving_replicas;

use std::{any::Any, fmt, time::Duration};

use serde::Deserialize;

use crate::{
    cause::{Cause, Reason, Subject},
    handler::{HandlerId, filter::Filters},
    object::{
        ObjectView,
        diff::{Baseline, Diff},
        essence::Essence,
    },
};

/// The role of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebhookRole {
    /// It allows or denies requests.
    Validating,
    /// It may change the object, too.
    Mutating,
}

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is changed.
    Update,
    /// The object is deleted.
    Delete,
    /// A client connects to the object, as `kubectl exec` does.
    Connect,
}

/// The endpoint of an object that a webhook reviews.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WebhookEndpoint {
    /// The object itself.
    #[default]
    Main,
    /// A subresource, such as `status` or `scale`.
    Subresource(String),
    /// The object and all of its subresources.
    All,
}

/// The side effects of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SideEffects {
    /// It has none.
    #[default]
    None,
    /// It has none in a dry run.
    NoneOnDryRun,
}

/// The treatment of a request when the API server cannot call the webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The API server rejects it.
    #[default]
    Refuse,
    /// The API server accepts it.
    Ignore,
}

/// The lifetime of the configuration of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigurationLifetime {
    /// As long as a replica serves the webhook.
    #[default]
    WhileServed,
    /// For good: the API server rejects its requests while no replica serves it.
    Persistent,
}

/// A declared webhook, without its function.
#[derive(Clone, Debug)]
pub struct WebhookSpec {
    /// Its id.
    pub id: HandlerId,
    /// Its role.
    pub role: WebhookRole,
    /// The operations that it reviews; all if empty.
    pub operations: Vec<Operation>,
    /// The endpoint that it reviews.
    pub endpoint: WebhookEndpoint,
    /// Its side effects.
    pub side_effects: SideEffects,
    /// The treatment of requests when it cannot be called.
    pub on_failure: FailurePolicy,
    /// The lifetime of its configuration.
    pub lifetime: ConfigurationLifetime,
    /// The time limit of the API server for its response.
    pub timeout: Duration,
    /// The objects that it reviews.
    pub filters: Filters,
}

/// The longest time limit that the API server accepts.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

// === impl WebhookRole ===

impl WebhookRole {
    /// Both, in the order in which the API server calls them.
    pub const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// The first part of the path of its webhooks.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Validating => "validate",
            Self::Mutating => "mutate",
        }
    }

    /// The kind of the object that configures such webhooks.
    #[must_use]
    pub fn configuration_kind(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
        }
    }

    /// The plural of that kind.
    #[must_use]
    pub fn configuration_plural(self) -> &'static str {
        match self {
            Self::Validating => "validatingwebhookconfigurations",
            Self::Mutating => "mutatingwebhookconfigurations",
        }
    }
}

// === impl Operation ===

impl Operation {
    /// The word in reviews and configurations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    fn reason(self) -> Reason {
        match self {
            Self::Create => Reason::Create,
            Self::Update => Reason::Update,
            Self::Delete => Reason::Delete,
            Self::Connect => Reason::Noop,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl WebhookEndpoint ===

impl WebhookEndpoint {
    /// The resource in a rule for it.
    #[must_use]
    pub fn resource(&self, plural: &str) -> String {
        match self {
            Self::Main => plural.to_owned(),
            Self::Subresource(name) => format!("{plural}/{name}"),
            Self::All => format!("{plural}/*"),
        }
    }

    fn includes(&self, subresource: Option<&str>) -> bool {
        match self {
            Self::Main => subresource.is_none(),
            Self::Subresource(name) => subresource == Some(name),
            Self::All => true,
        }
    }
}

// === impl WebhookSpec ===

impl WebhookSpec {
    /// A webhook without conditions and with the defaults.
    #[must_use]
    pub fn new(id: impl Into<HandlerId>, role: WebhookRole) -> Self {
        Self {
            id: id.into(),
            role,
            operations: Vec::new(),
            endpoint: WebhookEndpoint::default(),
            side_effects: SideEffects::default(),
            on_failure: FailurePolicy::default(),
            lifetime: ConfigurationLifetime::default(),
            timeout: LONGEST_TIMEOUT,
            filters: Filters::default(),
        }
    }

    /// Whether it reviews such a request, regardless of the configuration.
    ///
    /// A deleted object cannot be changed, so a mutating webhook reviews deletions only if it names
    /// that operation.
    #[must_use]
    pub fn concerns(&self, operation: Operation, subresource: Option<&str>) -> bool {
        let wanted = match (self.operations.as_slice(), self.role, operation) {
            ([], WebhookRole::Mutating, Operation::Delete) => false,
            ([], _, _) => true,
            (wanted, _, _) => wanted.contains(&operation),
        };
        wanted && self.endpoint.includes(subresource)
    }

    /// Whether it has filters, for which the object has to be decoded.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        let filters = &self.filters;
        !filters.labels.is_empty()
            || !filters.annotations.is_empty()
            || filters.field.is_some()
            || filters.when.is_some()
    }

    /// Whether its filters accept the object.
    #[must_use]
    pub fn matches(&self, operation: Operation, reviewed: &ReviewedObject<'_>) -> bool {
        let diff = Diff::default();
        let body = ObjectView::new(reviewed.body);
        let cause = Cause {
            reason: operation.reason(),
            initial: false,
            body,
            old: reviewed.old,
            new: reviewed.new,
            diff: &diff,
        };
        let subject = Subject::change(&cause).with_context(reviewed.context);
        self.filters.matches(&subject, false)
    }
}

/// An object before and after a request, for filters.
#[derive(Clone, Copy)]
pub struct ReviewedObject<'a> {
    /// The object as it will be, or as it was if it is being deleted.
    pub body: &'a serde_json::Value,
    /// The object before the request.
    pub old: &'a Baseline,
    /// The object after the request.
    pub new: &'a Essence,
    /// The runtime's own data about the request, for predicates.
    pub context: &'a (dyn Any + Send + Sync),
}

#[cfg(test)]
mod tests;
