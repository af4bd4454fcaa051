//! The methods of a kind's trait: which there are, and what each is for.

use super::handler::{Handler, HandlerFilter, Predicate, TypedField};
use super::operator::HandledKind;
use super::webhook::Webhook;

/// What a method is for.
#[derive(Clone, Copy, Debug)]
pub enum MethodRole<'a> {
    /// The function of a handler.
    Handler(&'a Handler),
    /// The function that computes the delay of a handler.
    Delay {
        /// Its name.
        name: &'a str,
        /// The handler.
        handler: &'a Handler,
    },
    /// The function of a webhook.
    Webhook(&'a Webhook),
    /// A function that decides about a filter.
    Predicate {
        /// The function.
        predicate: &'a Predicate,
        /// The filter.
        filter: &'a HandlerFilter,
        /// The owner of the filter.
        owner: FilterOwner<'a>,
    },
}

/// The owner of a filter.
#[derive(Clone, Copy, Debug)]
pub enum FilterOwner<'a> {
    /// A handler.
    Handler(&'a Handler),
    /// A webhook.
    Webhook(&'a Webhook),
}

// === impl HandledKind ===

impl HandledKind {
    /// What its methods are for, predicates after the handlers that use them. A method can have
    /// several.
    pub fn method_roles(&self) -> impl Iterator<Item = MethodRole<'_>> {
        let handlers = self.handlers.iter().map(MethodRole::Handler);
        let owners = self.handlers.iter().map(FilterOwner::Handler);
        let predicates = owners.flat_map(FilterOwner::predicates);
        let delays = self.handlers.iter().filter_map(|handler| {
            let name = handler.computed_delay()?;
            Some(MethodRole::Delay { name, handler })
        });
        let webhooks = self.webhooks.iter().map(MethodRole::Webhook);
        let owners = self.webhooks.iter().map(FilterOwner::Webhook);
        let webhook_predicates = owners.flat_map(FilterOwner::predicates);
        handlers
            .chain(predicates)
            .chain(delays)
            .chain(webhooks)
            .chain(webhook_predicates)
    }

    /// The names of its methods, each once.
    #[must_use]
    pub fn method_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.method_roles().map(MethodRole::name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

// === impl MethodRole ===

impl<'a> MethodRole<'a> {
    /// The name of the method.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Self::Handler(handler) => &handler.method,
            Self::Delay { name, .. } => name,
            Self::Webhook(webhook) => &webhook.method,
            Self::Predicate { predicate, .. } => &predicate.method,
        }
    }
}

// === impl FilterOwner ===

impl<'a> FilterOwner<'a> {
    /// The name of its function.
    #[must_use]
    pub fn method(self) -> &'a str {
        match self {
            Self::Handler(handler) => &handler.method,
            Self::Webhook(webhook) => &webhook.method,
        }
    }

    /// The field that it is about.
    #[must_use]
    pub fn field(self) -> Option<&'a TypedField> {
        match self {
            Self::Handler(handler) => handler.field(),
            Self::Webhook(webhook) => webhook.field.as_ref(),
        }
    }

    fn predicates(self) -> impl Iterator<Item = MethodRole<'a>> {
        let filters = match self {
            Self::Handler(handler) => &handler.filters,
            Self::Webhook(webhook) => &webhook.filters,
        };
        filters.iter().flat_map(move |filter| {
            let predicates = filter.predicates();
            predicates.map(move |predicate| MethodRole::Predicate {
                predicate,
                filter,
                owner: self,
            })
        })
    }
}
