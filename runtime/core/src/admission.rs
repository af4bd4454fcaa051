//! Admission: what the API server asks before it stores an object, and what it is told.

pub mod certificate;
pub mod configuration;
pub mod local_cluster;
pub mod review;
pub mod rotation;
pub mod serving_replicas;

use std::{fmt, time::Duration};

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

/// What the API server lets a webhook do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebhookRole {
    /// Say yes or no.
    Validating,
    /// Change the object as well.
    Mutating,
}

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is being created.
    Create,
    /// It is being changed.
    Update,
    /// It is being deleted.
    Delete,
    /// Somebody connects to it, as `kubectl exec` does.
    Connect,
}

/// Which of an object's endpoints a webhook is about.
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

/// Whether a webhook does anything besides answering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SideEffects {
    /// Never.
    #[default]
    None,
    /// Not in a dry run.
    NoneOnDryRun,
}

/// What becomes of a request when the webhook cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is refused.
    #[default]
    Refuse,
    /// It passes.
    Ignore,
}

/// How long a webhook is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigurationLifetime {
    /// As long as somebody serves it.
    #[default]
    WhileServed,
    /// For good: what it checks is refused while nobody serves it.
    Persistent,
}

/// A declared webhook, without its function.
#[derive(Clone, Debug)]
pub struct WebhookSpec {
    /// Its identity.
    pub id: HandlerId,
    /// What it may do.
    pub role: WebhookRole,
    /// What it is asked about; everything if empty.
    pub operations: Vec<Operation>,
    /// Which endpoint of the objects it is about.
    pub endpoint: WebhookEndpoint,
    /// Whether it does anything besides answering.
    pub side_effects: SideEffects,
    /// What happens if it cannot be asked.
    pub on_failure: FailurePolicy,
    /// How long it is configured.
    pub lifetime: ConfigurationLifetime,
    /// How long the API server waits for it.
    pub timeout: Duration,
    /// Which objects it is about.
    pub filters: Filters,
}

/// The longest time for which the API server waits for a webhook.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

// === impl WebhookRole ===

impl WebhookRole {
    /// Both, in the order in which the API server asks.
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

    /// Whether it is to be asked about such a request at all, whatever the configuration says.
    ///
    /// A deleted object cannot be changed, so a mutating webhook is asked about deletions only if
    /// it says so itself.
    #[must_use]
    pub fn concerns(&self, operation: Operation, subresource: Option<&str>) -> bool {
        let wanted = match (self.operations.as_slice(), self.role, operation) {
            ([], WebhookRole::Mutating, Operation::Delete) => false,
            ([], _, _) => true,
            (wanted, _, _) => wanted.contains(&operation),
        };
        wanted && self.endpoint.includes(subresource)
    }

    /// Whether the object has to be looked at to know if the webhook is about it.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        let filters = &self.filters;
        !filters.labels.is_empty()
            || !filters.annotations.is_empty()
            || filters.field.is_some()
            || filters.when.is_some()
    }

    /// Whether the object is one that the webhook is about.
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
        self.filters.matches(&Subject::change(&cause), false)
    }
}

/// An object before and after a request, as filters look at it.
#[derive(Clone, Copy, Debug)]
pub struct ReviewedObject<'a> {
    /// The object as it will be, or as it was if it is being deleted.
    pub body: &'a serde_json::Value,
    /// The object before the request.
    pub old: &'a Baseline,
    /// The object after the request.
    pub new: &'a Essence,
}

#[cfg(test)]
mod tests;
