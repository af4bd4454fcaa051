//! Webhooks as the generated code needs them: every name decided, every type known.

use std::time::Duration;

use super::handler::{HandlerFilter, TypedField};
use crate::load::manifest::Operation;

/// One method of a kind's trait that the API server asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// The id, without the field that is appended to it.
    pub id: String,
    /// The method.
    pub method: String,
    /// What it may do.
    pub role: WebhookRole,
    /// What it is asked about; everything if empty.
    pub operations: Vec<Operation>,
    /// Which endpoint of the objects it is about.
    pub endpoint: WebhookEndpoint,
    /// Whether it does more than answering.
    pub side_effects: bool,
    /// Whether requests pass when it fails.
    pub ignore_failures: bool,
    /// Whether it stays when the operator stops.
    pub persistent: bool,
    /// How long the API server waits.
    pub timeout: Option<Duration>,
    /// The field that it is about.
    pub field: Option<TypedField>,
    /// Which objects it is about.
    pub filters: Vec<HandlerFilter>,
    /// What the method is told on every call.
    pub param: Option<serde_json::Value>,
}

/// What a webhook may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookRole {
    /// Say yes or no.
    Validate,
    /// Change the object as well.
    Mutate,
}

/// Which endpoint of an object a webhook is about.
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

// === impl Endpoint ===

impl WebhookEndpoint {
    /// Whether what is reviewed is an object of the kind; subresources may be something else.
    #[must_use]
    pub fn has_the_object(&self) -> bool {
        match self {
            Self::Main => true,
            Self::Subresource(name) => name == "status",
            Self::All => false,
        }
    }
}
