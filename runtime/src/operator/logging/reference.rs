//! Which object and which handler the lines inside a span are about.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::span;

/// An object, as log lines name it.
#[derive(Debug, Clone, Default)]
pub(super) struct Reference {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
}

/// A handler, as log lines name it.
#[derive(Debug, Clone, Default)]
pub(super) struct HandlerId(pub(super) String);

/// Remembers with each span what it is about.
pub(super) struct References;

// === impl Reference ===

impl Reference {
    fn of(attributes: &Attributes<'_>) -> Self {
        let mut reference = Self::default();
        attributes.record(&mut reference);
        reference
    }

    /// As Kopf begins its lines.
    pub(super) fn prefix(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("[{namespace}/{}]", self.name),
            None => format!("[{}]", self.name),
        }
    }

    pub(super) fn into_json(self) -> Value {
        let mut json = Map::new();
        json.insert("apiVersion".to_owned(), self.api_version.into());
        json.insert("kind".to_owned(), self.kind.into());
        if let Some(namespace) = self.namespace {
            json.insert("namespace".to_owned(), namespace.into());
        }
        json.insert("name".to_owned(), self.name.into());
        json.insert("uid".to_owned(), self.uid.into());
        json.into()
    }
}

impl Visit for Reference {
    fn record_str(&mut self, field: &Field, value: &str) {
        let value = value.to_owned();
        match field.name() {
            "api_version" => self.api_version = value,
            "kind" => self.kind = value,
            "namespace" => self.namespace = Some(value),
            "name" => self.name = value,
            "uid" => self.uid = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

// === impl HandlerId ===

impl Visit for HandlerId {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "id" {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

// === impl References ===

impl<S> Layer<S> for References
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id).filter(|span| is_ours(span.metadata())) else {
            return;
        };
        match span.name() {
            span::OBJECT => {
                span.extensions_mut().insert(Reference::of(attributes));
            }
            span::HANDLER => {
                let mut handler = HandlerId::default();
                attributes.record(&mut handler);
                let mut extensions = span.extensions_mut();
                extensions.insert(handler);
                if span.metadata().fields().field("uid").is_some() {
                    extensions.insert(Reference::of(attributes));
                }
            }
            _ => {}
        }
    }
}

/// Users have spans of any name.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target() == span::TARGET
}
