//! The admission webhooks of a kind, with all names chosen and all types resolved.

use super::param::Param;
use std::time::Duration;

use super::handler::{HandlerFilter, TypedField};
use crate::load::manifest::Operation;

/// One method of a kind's trait that reviews admission requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// The id, without the suffix for the field.
    pub id: String,
    /// The method.
    pub method: String,
    /// Whether it validates or mutates.
    pub role: WebhookRole,
    /// The operations that it reviews; all if empty.
    pub operations: Vec<Operation>,
    /// The endpoint whose requests it reviews.
    pub endpoint: WebhookEndpoint,
    /// Whether it has side effects.
    pub side_effects: bool,
    /// Whether the API server admits requests if the webhook fails.
    pub ignore_failures: bool,
    /// Whether it stays configured while the operator does not run.
    pub persistent: bool,
    /// The time that the API server waits for an answer.
    pub timeout: Option<Duration>,
    /// The field that it reviews.
    pub field: Option<TypedField>,
    /// The objects that it reviews.
    pub filters: Vec<HandlerFilter>,
    /// The value that every call receives.
    pub param: Option<Param>,
}

/// The type of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookRole {
    /// It admits or denies requests.
    Validate,
    /// It may also change the object.
    Mutate,
}

/// The endpoint whose requests a webhook reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookEndpoint {
    /// The object itself.
    Main,
    /// A subresource.
    Subresource(String),
    /// The object and all of its subresources.
    All,
}

// === impl Webhook ===

impl Webhook {
    /// The id with the field.
    #[must_use]
    pub fn full_id(&self) -> String {
        match &self.field {
            Some(field) => format!("{}/{field}", self.id),
            None => self.id.clone(),
        }
    }
}

// === impl WebhookEndpoint ===

impl WebhookEndpoint {
    /// Whether a review contains an object of the kind; subresources may have other types.
    #[must_use]
    pub fn has_the_object(&self) -> bool {
        match self {
            Self::Main => true,
            Self::Subresource(name) => name == "status",
            Self::All => false,
        }
    }
}
