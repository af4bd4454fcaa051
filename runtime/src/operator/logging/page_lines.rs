//! Passes the log lines about objects to the page of the operator.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::line::severity;
use super::span_fields::SpanFields;
use crate::page::journal::log_lines;

/// Passes each log line about an object to the journals of the process.
pub(super) struct PageLinesLayer;

/// The message of a line, followed by its fields.
#[derive(Default)]
struct PageLine {
    message: String,
    fields: String,
}

impl<S> Layer<S> for PageLinesLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        if !log_lines::is_listening() {
            return;
        }
        let mut handler = None;
        let spans = ctx.event_scope(event).into_iter().flatten();
        for span in spans {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<SpanFields>() else {
                continue;
            };
            if handler.is_none() {
                handler = fields.handler().map(str::to_owned);
            }
            if let Some(object) = fields.object() {
                let mut line = PageLine::default();
                event.record(&mut line);
                let level = severity(*event.metadata().level());
                let text = line.message + &line.fields;
                return log_lines::keep(object.uid(), level, handler.as_deref(), &text);
            }
        }
    }
}

// === impl PageLine ===

impl Visit for PageLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        // Writing to a String does not fail.
        let _ = written;
    }
}
