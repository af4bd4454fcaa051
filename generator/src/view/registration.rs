//! The expressions with which generated code registers handlers at the runtime. All names have
//! their paths; `format` imports them.

use std::time::Duration;

use super::literal;
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
    let mut declaration = format!("kopf_runtime::WebhookHandler::new({:?})", webhook.id);
    if !webhook.operations.is_empty() {
        let operations = webhook.operations.iter().map(|operation| match operation {
            Operation::Create => "kopf_runtime::Operation::Create",
            Operation::Update => "kopf_runtime::Operation::Update",
            Operation::Delete => "kopf_runtime::Operation::Delete",
            Operation::Connect => "kopf_runtime::Operation::Connect",
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
            format!(
                "kopf_runtime::ChangeHandler::new({:?}, {})",
                handler.id,
                on(change)
            ),
        ),
        HandlerCause::Field { field, within } => {
            let new = format!(
                "kopf_runtime::FieldHandler::new({:?}, {:?})",
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
        HandlerCause::Event { .. } => (
            "event",
            format!("kopf_runtime::EventHandler::new({:?})", handler.id),
        ),
        HandlerCause::Daemon(daemon) => ("daemon", daemon_declaration(&handler.id, daemon)),
        HandlerCause::Timer(timer) => ("timer", timer_declaration(&handler.id, timer)),
        HandlerCause::Index(indexing) => {
            let index = &indexing.index.type_name;
            (
                "index",
                format!("{index}, kopf_runtime::IndexHandler::new()"),
            )
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
    let mut text = format!("kopf_runtime::DaemonHandler::new({id:?})");
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
            let mut text = format!(
                "kopf_runtime::TimerHandler::every({id:?}, {})",
                duration(interval)
            );
            if sharp {
                text += ".sharp()";
            }
            if let Some(idle) = idle {
                text += &format!(".idle({})", duration(idle));
            }
            text
        }
        TimerSchedule::Idle(idle) => format!(
            "kopf_runtime::TimerHandler::when_idle({id:?}, {})",
            duration(idle)
        ),
    };
    text += &initial_delay(timer.initial_delay.as_ref());
    text
}

fn initial_delay(delay: Option<&StartDelay>) -> String {
    match delay {
        None => String::new(),
        Some(StartDelay::Fixed(delay)) => format!(".initial_delay({})", duration(*delay)),
        Some(StartDelay::Computed(name)) => format!(
            ".initial_delay_by(kopf_runtime::predicate::delay(state, |state, object| state.{name}(object)))"
        ),
    }
}

fn on(change: &ChangeTriggers) -> String {
    let mut words = change.triggers.iter().map(|trigger| match trigger {
        Trigger::Create => "kopf_runtime::On::create()",
        Trigger::Update => "kopf_runtime::On::update()",
        Trigger::Delete if change.optional => "kopf_runtime::On::optional_delete()",
        Trigger::Delete => "kopf_runtime::On::delete()",
        Trigger::Resume if change.deleted => "kopf_runtime::On::resume_deleted()",
        Trigger::Resume => "kopf_runtime::On::resume()",
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
        text += &format!(".errors(kopf_runtime::ErrorMode::{mode})");
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
        format!("std::time::Duration::from_secs({})", duration.as_secs())
    } else if duration.subsec_nanos().is_multiple_of(1_000_000) {
        format!("std::time::Duration::from_millis({})", duration.as_millis())
    } else {
        format!(
            "std::time::Duration::new({}, {})",
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
        let value = value.unwrap_or_else(|| "kopf_runtime::ValueTest::Present".to_owned());
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
            FilterTest::Present => "kopf_runtime::ValueTest::Present".to_owned(),
            FilterTest::Absent => "kopf_runtime::ValueTest::Absent".to_owned(),
            FilterTest::Equals(value) => {
                format!("kopf_runtime::ValueTest::Equals({})", json_literal(value))
            }
            FilterTest::Predicate(name) => {
                format!("kopf_runtime::predicate::value(state, |state, value| state.{name}(value))")
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
        FilterTest::Present => "kopf_runtime::TextTest::Present".to_owned(),
        FilterTest::Absent => "kopf_runtime::TextTest::Absent".to_owned(),
        FilterTest::Equals(value) => format!(
            "kopf_runtime::TextTest::Equals({:?}.to_owned())",
            value.as_str().unwrap_or_default()
        ),
        FilterTest::Predicate(name) => {
            format!("kopf_runtime::predicate::text(state, |state, value| state.{name}(value))")
        }
    };
    match (&filter.subject, &filter.expected) {
        (FilterSubject::Label(key), _) => format!(".label({key:?}, {})", test()),
        (FilterSubject::Annotation(key), _) => format!(".annotation({key:?}, {})", test()),
        (FilterSubject::Object, FilterTest::Predicate(name)) => {
            format!(
                ".when(kopf_runtime::predicate::object(state, |state, object| state.{name}(object)))"
            )
        }
        _ => String::new(),
    }
}

/// A JSON value as an argument.
fn json_literal(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => format!("{text:?}.into()"),
        other => literal::json(other),
    }
}
