//! Which object and which handler the lines inside a span are about.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::events::span;

/// What a span says about its object and its handler.
///
/// There is one for each call of a handler, and most calls have nothing to say: all texts are in
/// one.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    text: String,
    places: [Option<Place>; PARTS],
}

/// Where a part begins and ends.
type Place = (usize, usize);

/// What may be said.
#[derive(Debug, Clone, Copy)]
enum Part {
    ApiVersion,
    Kind,
    Namespace,
    Name,
    Uid,
    Handler,
}

const PARTS: usize = 6;

/// Enough for most objects.
const USUAL_LENGTH: usize = 160;

/// An object, as log lines name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference<'a>(&'a About);

/// Remembers with each span what it is about.
pub(super) struct References;

// === impl About ===

impl About {
    fn of(attributes: &Attributes<'_>) -> Self {
        let mut about = Self {
            text: String::with_capacity(USUAL_LENGTH),
            ..Self::default()
        };
        attributes.record(&mut about);
        about
    }

    /// The object, if the span is about one.
    pub(super) fn object(&self) -> Option<Reference<'_>> {
        self.get(Part::Uid).map(|_| Reference(self))
    }

    /// The id of the handler, if the span is about one.
    pub(super) fn handler(&self) -> Option<&str> {
        self.get(Part::Handler)
    }

    fn get(&self, part: Part) -> Option<&str> {
        let (begin, end) = self.places[part as usize]?;
        self.text.get(begin..end)
    }
}

impl Visit for About {
    fn record_str(&mut self, field: &Field, value: &str) {
        let part = match field.name() {
            "api_version" => Part::ApiVersion,
            "kind" => Part::Kind,
            "namespace" => Part::Namespace,
            "name" => Part::Name,
            "uid" => Part::Uid,
            "id" => Part::Handler,
            _ => return,
        };
        let begin = self.text.len();
        self.text.push_str(value);
        self.places[part as usize] = Some((begin, self.text.len()));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

// === impl Reference ===

impl Reference<'_> {
    /// As Kopf begins its lines.
    pub(super) fn prefix(self) -> String {
        let name = self.get(Part::Name);
        match self.0.get(Part::Namespace) {
            Some(namespace) => format!("[{namespace}/{name}]"),
            None => format!("[{name}]"),
        }
    }

    pub(super) fn to_json(self) -> Value {
        let mut json = Map::new();
        json.insert("apiVersion".to_owned(), self.get(Part::ApiVersion).into());
        json.insert("kind".to_owned(), self.get(Part::Kind).into());
        if let Some(namespace) = self.0.get(Part::Namespace) {
            json.insert("namespace".to_owned(), namespace.into());
        }
        json.insert("name".to_owned(), self.get(Part::Name).into());
        json.insert("uid".to_owned(), self.get(Part::Uid).into());
        json.into()
    }

    fn get(&self, part: Part) -> &str {
        self.0.get(part).unwrap_or_default()
    }
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
        span.extensions_mut().insert(About::of(attributes));
    }
}

/// Users have spans of any name.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target() == span::TARGET
}
