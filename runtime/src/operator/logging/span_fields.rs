//! The object and the handler of a span, for the log lines inside of it.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::events::span;

/// The fields of a span that log lines need.
///
/// Every call of a handler makes one, so all values are in one allocation.
#[derive(Debug, Clone, Default)]
pub(super) struct SpanFields {
    text: String,
    ranges: [Option<ByteRange>; SPAN_FIELDS],
}

/// The start and the end of a value in the text.
type ByteRange = (usize, usize);

/// A field that log lines need.
#[derive(Debug, Clone, Copy)]
enum SpanField {
    ApiVersion,
    Kind,
    Namespace,
    Name,
    Uid,
    Handler,
}

const SPAN_FIELDS: usize = 6;

/// Enough for most objects.
const INITIAL_CAPACITY: usize = 160;

/// The object of a span, as log lines name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoggedObject<'a>(&'a SpanFields);

/// Stores the fields of each span of the runtime with it.
pub(super) struct SpanFieldsLayer;

// === impl SpanFields ===

impl SpanFields {
    fn of(attributes: &Attributes<'_>) -> Self {
        let mut fields = Self {
            text: String::with_capacity(INITIAL_CAPACITY),
            ..Self::default()
        };
        attributes.record(&mut fields);
        fields
    }

    /// The object, if the span has one.
    pub(super) fn object(&self) -> Option<LoggedObject<'_>> {
        self.get(SpanField::Uid).map(|_| LoggedObject(self))
    }

    /// The id of the handler, if the span has one.
    pub(super) fn handler(&self) -> Option<&str> {
        self.get(SpanField::Handler)
    }

    fn get(&self, field: SpanField) -> Option<&str> {
        let (begin, end) = self.ranges[field as usize]?;
        self.text.get(begin..end)
    }
}

impl Visit for SpanFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let field = match field.name() {
            "api_version" => SpanField::ApiVersion,
            "kind" => SpanField::Kind,
            "namespace" => SpanField::Namespace,
            "name" => SpanField::Name,
            "uid" => SpanField::Uid,
            "id" => SpanField::Handler,
            _ => return,
        };
        let begin = self.text.len();
        self.text.push_str(value);
        self.ranges[field as usize] = Some((begin, self.text.len()));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

// === impl LoggedObject ===

impl LoggedObject<'_> {
    /// The prefix with which Kopf begins a line.
    pub(super) fn prefix(self) -> String {
        let name = self.get(SpanField::Name);
        match self.0.get(SpanField::Namespace) {
            Some(namespace) => format!("[{namespace}/{name}]"),
            None => format!("[{name}]"),
        }
    }

    pub(super) fn to_json(self) -> Value {
        let mut json = Map::new();
        json.insert(
            "apiVersion".to_owned(),
            self.get(SpanField::ApiVersion).into(),
        );
        json.insert("kind".to_owned(), self.get(SpanField::Kind).into());
        if let Some(namespace) = self.0.get(SpanField::Namespace) {
            json.insert("namespace".to_owned(), namespace.into());
        }
        json.insert("name".to_owned(), self.get(SpanField::Name).into());
        json.insert("uid".to_owned(), self.get(SpanField::Uid).into());
        json.into()
    }

    pub(super) fn uid(&self) -> &str {
        self.get(SpanField::Uid)
    }

    fn get(&self, field: SpanField) -> &str {
        self.0.get(field).unwrap_or_default()
    }
}

// === impl SpanFieldsLayer ===

impl<S> Layer<S> for SpanFieldsLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id).filter(|span| is_ours(span.metadata())) else {
            return;
        };
        span.extensions_mut().insert(SpanFields::of(attributes));
    }
}

/// Spans of user code may have the same names and fields.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target() == span::TARGET
}
