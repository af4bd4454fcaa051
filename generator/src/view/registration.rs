//! The expressions with which generated code registers handlers at the runtime.

use std::time::Duration;

use crate::load::manifest::{ErrorMode, Operation, Trigger};
use crate::model::handler::{
    ChangeTriggers, DaemonOptions, FilterSubject, FilterTest, Handler, HandlerCause, HandlerFilter,
    RetryOptions, StartDelay, TimerOptions, TimerSchedule,
};
use crate::model::webhook::{Webhook, WebhookEndpoint, WebhookRole};

/// The registration of one handler.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) register: &'static str,
    pub(super) declaration: String,
    pub(super) method: String,
}

pub(super) fn webhook(webhook: &Webhook) -> Registration {
    let mut declaration = format!("WebhookHandler::new({:?})", webhook.id);
    if !webhook.operations.is_empty() {
        let operations = webhook.operations.iter().map(|operation| match operation {
            Operation::Create => "Operation::Create",
            Operation::Update => "Operation::Update",
            Operation::Delete => "Operation::Delete",
            Operation::Connect => "Operation::Connect",
        });
        let operations = operations.collect::<Vec<_>>().join(", ");
        declaration += &format!(".operations([{operations}])");
    }
    match &webhook.endpoint {
        WebhookEndpoint::Main => {}
        WebhookEndpoint::Subresource(name) => declaration += &format!(".subresource({name:?})"),
        WebhookEndpoint::All => declaration += ".all_subresources()",
    }
    for (method, set) in [
        ("side_effects", webhook.side_effects),
        ("ignore_failures", webhook.ignore_failures),
        ("persistent", webhook.persistent),
    ] {
        if set {
            declaration += &format!(".{method}()");
        }
    }
    if let Some(timeout) = webhook.timeout {
        declaration += &format!(".timeout({})", duration(timeout));
    }
    if let Some(field) = &webhook.field {
        declaration += &match value_tests(&webhook.filters) {
            (Some(value), _, _) => format!(".value({:?}, {value})", field.to_string()),
            (None, None, None) => format!(".field({:?})", field.to_string()),
            (None, old, new) => format!(
                ".transition({:?}, {}, {})",
                field.to_string(),
                optional(old),
                optional(new)
            ),
        };
    }
    declaration.extend(webhook.filters.iter().map(other_filter));
    declaration += &param(webhook.param.as_ref());
    Registration {
        register: match webhook.role {
            WebhookRole::Validate => "validate",
            WebhookRole::Mutate => "mutate",
        },
        declaration,
        method: webhook.method.clone(),
    }
}

pub(super) fn param(param: Option<&serde_json::Value>) -> String {
    match param {
        None => String::new(),
        Some(serde_json::Value::String(text)) => format!(".param({text:?})"),
        Some(other) => format!(".param({})", json_literal(other)),
    }
}

pub(super) fn handler(handler: &Handler) -> Registration {
    let (register, new) = match &handler.cause {
        HandlerCause::Change(change) => (
            "change",
            format!("ChangeHandler::new({:?}, {})", handler.id, on(change)),
        ),
        HandlerCause::Field { field, within } => {
            let new = format!(
                "FieldHandler::new({:?}, {:?})",
                handler.id,
                field.to_string()
            );
            let on = if within.triggers.is_empty() {
                String::new()
            } else {
                format!(".on({})", on(within))
            };
            ("field", new + &on)
        }
        HandlerCause::Event { .. } => ("event", format!("EventHandler::new({:?})", handler.id)),
        HandlerCause::Daemon(daemon) => ("daemon", daemon_declaration(&handler.id, daemon)),
        HandlerCause::Timer(timer) => ("timer", timer_declaration(&handler.id, timer)),
        HandlerCause::Index(indexing) => {
            let index = &indexing.index.type_name;
            ("index", format!("{index}, IndexHandler::new()"))
        }
    };
    let options = [
        retry_options(&handler.retry),
        field_filters(handler),
        other_filters(handler),
        param(handler.param.as_ref()),
    ];
    Registration {
        register,
        declaration: new + &options.concat(),
        method: handler.method.clone(),
    }
}

fn daemon_declaration(id: &str, daemon: &DaemonOptions) -> String {
    let mut text = format!("DaemonHandler::new({id:?})");
    text += &initial_delay(daemon.initial_delay.as_ref());
    for (option, time) in [
        ("cancellation_backoff", daemon.cancellation_backoff),
        ("cancellation_timeout", daemon.cancellation_timeout),
        ("cancellation_polling", daemon.cancellation_polling),
    ] {
        if let Some(time) = time {
            text += &format!(".{option}({})", duration(time));
        }
    }
    text
}

fn timer_declaration(id: &str, timer: &TimerOptions) -> String {
    let mut text = match timer.schedule {
        TimerSchedule::Every {
            interval,
            sharp,
            idle,
        } => {
            let mut text = format!("TimerHandler::every({id:?}, {})", duration(interval));
            if sharp {
                text += ".sharp()";
            }
            if let Some(idle) = idle {
                text += &format!(".idle({})", duration(idle));
            }
            text
        }
        TimerSchedule::Idle(idle) => format!("TimerHandler::when_idle({id:?}, {})", duration(idle)),
    };
    text += &initial_delay(timer.initial_delay.as_ref());
    text
}

fn initial_delay(delay: Option<&StartDelay>) -> String {
    match delay {
        None => String::new(),
        Some(StartDelay::Fixed(delay)) => format!(".initial_delay({})", duration(*delay)),
        Some(StartDelay::Computed(name)) => format!(
            ".initial_delay_by(predicate::delay(state, |state, object| state.{name}(object)))"
        ),
    }
}

fn on(change: &ChangeTriggers) -> String {
    let mut words = change.triggers.iter().map(|trigger| match trigger {
        Trigger::Create => "On::create()",
        Trigger::Update => "On::update()",
        Trigger::Delete if change.optional => "On::optional_delete()",
        Trigger::Delete => "On::delete()",
        Trigger::Resume if change.deleted => "On::resume_deleted()",
        Trigger::Resume => "On::resume()",
        Trigger::Field | Trigger::Event => unreachable!("neither is a kind of change"),
    });
    let first = words
        .next()
        .expect("a change handler has a trigger")
        .to_owned();
    words.fold(first, |on, word| format!("{on}.or({word})"))
}

pub(super) fn retry_options(retry: &RetryOptions) -> String {
    let mut text = String::new();
    if let Some(errors) = retry.errors {
        let mode = match errors {
            ErrorMode::Ignored => "Ignored",
            ErrorMode::Temporary => "Temporary",
            ErrorMode::Permanent => "Permanent",
        };
        text += &format!(".errors(ErrorMode::{mode})");
    }
    if let Some(timeout) = retry.timeout {
        text += &format!(".timeout({})", duration(timeout));
    }
    if let Some(retries) = retry.retries {
        text += &format!(".retries({retries})");
    }
    if let Some(backoff) = retry.backoff {
        text += &format!(".backoff({})", duration(backoff));
    }
    text
}

fn duration(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("Duration::from_secs({})", duration.as_secs())
    } else if duration.subsec_nanos().is_multiple_of(1_000_000) {
        format!("Duration::from_millis({})", duration.as_millis())
    } else {
        format!(
            "Duration::new({}, {})",
            duration.as_secs(),
            duration.subsec_nanos()
        )
    }
}

/// The filters on the handler's field.
fn field_filters(handler: &Handler) -> String {
    let (value, old, new) = value_tests(&handler.filters);
    let without_change = matches!(
        handler.cause,
        HandlerCause::Event { .. } | HandlerCause::Index(_)
    ) || handler.is_background();
    if without_change && let Some(field) = handler.field() {
        let value = value.unwrap_or_else(|| "ValueTest::Present".to_owned());
        return format!(".value({:?}, {value})", field.to_string());
    }
    match (value, old, new) {
        (Some(value), _, _) => format!(".value({value})"),
        (None, None, None) => String::new(),
        (None, old, new) => format!(".transition({}, {})", optional(old), optional(new)),
    }
}

fn optional(test: Option<String>) -> String {
    test.map_or("None".to_owned(), |test| format!("Some({test}.into())"))
}

/// The tests for the value, the old and the new value of a field.
fn value_tests(filters: &[HandlerFilter]) -> (Option<String>, Option<String>, Option<String>) {
    let test = |subject: &FilterSubject| {
        let filter = filters.iter().find(|filter| filter.subject == *subject)?;
        Some(match &filter.expected {
            FilterTest::Present => "ValueTest::Present".to_owned(),
            FilterTest::Absent => "ValueTest::Absent".to_owned(),
            FilterTest::Equals(value) => format!("ValueTest::Equals({})", json_literal(value)),
            FilterTest::Predicate(name) => {
                format!("predicate::value(state, |state, value| state.{name}(value))")
            }
        })
    };
    (
        test(&FilterSubject::Value),
        test(&FilterSubject::Old),
        test(&FilterSubject::New),
    )
}

/// The filters on labels, annotations and the whole object.
fn other_filters(handler: &Handler) -> String {
    handler.filters.iter().map(other_filter).collect()
}

fn other_filter(filter: &HandlerFilter) -> String {
    let test = || match &filter.expected {
        FilterTest::Present => "TextTest::Present".to_owned(),
        FilterTest::Absent => "TextTest::Absent".to_owned(),
        FilterTest::Equals(value) => format!(
            "TextTest::Equals({:?}.to_owned())",
            value.as_str().unwrap_or_default()
        ),
        FilterTest::Predicate(name) => {
            format!("predicate::text(state, |state, value| state.{name}(value))")
        }
    };
    match (&filter.subject, &filter.expected) {
        (FilterSubject::Label(key), _) => format!(".label({key:?}, {})", test()),
        (FilterSubject::Annotation(key), _) => format!(".annotation({key:?}, {})", test()),
        (FilterSubject::Object, FilterTest::Predicate(name)) => {
            format!(".when(predicate::object(state, |state, object| state.{name}(object)))")
        }
        _ => String::new(),
    }
}

/// A JSON value as an expression. Strings inside of `json!` need Rust's escapes, not JSON's.
fn json_literal(value: &serde_json::Value) -> String {
    if let serde_json::Value::String(text) = value {
        return format!("{text:?}.into()");
    }
    fn inner(value: &serde_json::Value) -> String {
        use serde_json::Value as Json;
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
            Json::String(text) => format!("{text:?}"),
            Json::Array(items) => format!(
                "[{}]",
                items.iter().map(inner).collect::<Vec<_>>().join(", ")
            ),
            Json::Object(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{key:?}: {}", inner(value)))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
    format!("serde_json::json!({})", inner(value))
}
