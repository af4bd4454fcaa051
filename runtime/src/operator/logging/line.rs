//! The formats of log lines, each with the object that the line is about.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::options::LogFormat;
use super::span_fields::{LoggedObject, SpanFields};

/// Formats log lines.
#[derive(Debug, Clone)]
pub(super) struct LineFormat {
    pub(super) format: LogFormat,
    /// Whether a line begins with the object that it is about.
    pub(super) prefix: bool,
    /// The key of the object in JSON.
    pub(super) reference_key: String,
}

/// Formats no fields of spans: they are not printed.
pub(super) struct DiscardFields;

impl<'writer> FormatFields<'writer> for DiscardFields {
    fn format_fields<R: RecordFields>(&self, _: Writer<'writer>, _: R) -> fmt::Result {
        Ok(())
    }
}

// === impl LineFormat ===

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let object = innermost(ctx, |fields| fields.object().is_some());
        let object = object.as_ref().and_then(SpanFields::object);
        match self.format {
            LogFormat::Json => {
                let handler = innermost(ctx, |fields| fields.handler().is_some());
                let handler = handler.as_ref().and_then(SpanFields::handler);
                writeln!(writer, "{}", self.json(event, object, handler))
            }
            LogFormat::Full | LogFormat::Plain => {
                if self.format == LogFormat::Full {
                    SystemTime.format_time(&mut writer)?;
                    write_level(&mut writer, *event.metadata().level())?;
                }
                if let (true, Some(object)) = (self.prefix, object) {
                    write!(writer, "{} ", object.prefix())?;
                }
                DefaultFields::new().format_fields(writer.by_ref(), event)?;
                writer.write_char('\n')
            }
        }
    }
}

impl LineFormat {
    fn json(
        &self,
        event: &Event<'_>,
        object: Option<LoggedObject<'_>>,
        handler: Option<&str>,
    ) -> Value {
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), timestamp().into());
        let severity = severity(*event.metadata().level());
        line.insert("severity".to_owned(), severity.into());
        let mut fields = JsonFields(Map::new());
        event.record(&mut fields);
        let mut fields = fields.0;
        if let (true, Some(object), Some(Value::String(message))) =
            (self.prefix, object, fields.get_mut("message"))
        {
            message.insert_str(0, &format!("{} ", object.prefix()));
        }
        line.append(&mut fields);
        if let Some(id) = handler {
            line.insert("handler".to_owned(), id.into());
        }
        if let Some(object) = object {
            line.insert(self.reference_key.clone(), object.to_json());
        }
        Value::Object(line)
    }
}

/// The fields of the innermost span around a log event that satisfies the condition.
fn innermost<S, N>(
    ctx: &FmtContext<'_, S, N>,
    condition: impl Fn(&SpanFields) -> bool,
) -> Option<SpanFields>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    ctx.event_scope()?.find_map(|span| {
        let extensions = span.extensions();
        extensions.get().filter(|fields| condition(fields)).cloned()
    })
}

fn timestamp() -> String {
    let mut text = String::new();
    // A time that cannot be formatted must not suppress the line.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

pub(super) fn severity(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

fn write_level(writer: &mut Writer<'_>, level: Level) -> fmt::Result {
    if !writer.has_ansi_escapes() {
        return write!(writer, " {level:>5} ");
    }
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    write!(writer, " \x1b[{colour}m{level:>5}\x1b[0m ")
}

/// The fields of a log event as JSON.
struct JsonFields(Map<String, Value>);

impl JsonFields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for JsonFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::events::span;
    use crate::operator::logging::span_fields::SpanFieldsLayer;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of a message in a handler of an object, and of a message without an object.
    fn printed(format: LogFormat, prefix: bool) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let lines = tracing_subscriber::fmt::layer()
            .fmt_fields(DiscardFields)
            .event_format(LineFormat {
                format,
                prefix,
                reference_key: "object".to_owned(),
            })
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry()
            .with(SpanFieldsLayer)
            .with(lines);
        tracing::subscriber::with_default(subscriber, || {
            let object = span::object("example.com/v1", "Widget", Some("default"), "one", "u-1");
            object.in_scope(|| {
                span::handler("create_fn", 0).in_scope(|| tracing::info!(size = 3, "made"));
            });
            tracing::warn!("alone");
        });
        let text = captured.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn plain_lines_have_the_object_and_the_message() {
        assert_eq!(
            printed(LogFormat::Plain, true),
            "[default/one] made size=3\nalone\n"
        );
        assert_eq!(printed(LogFormat::Plain, false), "made size=3\nalone\n");
    }

    #[test]
    fn full_lines_begin_with_time_and_level() {
        let printed = printed(LogFormat::Full, true);
        let mut lines = printed.lines();
        let (time, rest) = lines.next().unwrap().split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
        assert_eq!(rest, " INFO [default/one] made size=3");
        assert!(lines.next().unwrap().ends_with("  WARN alone"));
    }

    #[test]
    fn json_lines_refer_to_the_object_and_the_handler() {
        let printed = printed(LogFormat::Json, false);
        let mut lines = printed
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut first = lines.next().unwrap();
        assert!(first["timestamp"].take().is_string());
        assert_eq!(
            first,
            serde_json::json!({
                "timestamp": null,
                "severity": "info",
                "message": "made",
                "size": 3,
                "handler": "create_fn",
                "object": {
                    "apiVersion": "example.com/v1",
                    "kind": "Widget",
                    "namespace": "default",
                    "name": "one",
                    "uid": "u-1",
                },
            })
        );
        assert_eq!(lines.next().unwrap()["severity"], "warn");
    }
}
