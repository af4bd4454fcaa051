//! The expressions with which generated code registers handlers at the runtime. All names have
//! their paths; the module that contains them imports what it can.

use std::time::Duration;

use kopf_core::handler::filter::Combined;
use proc_macro2::Literal;
use syn::{Expr, Stmt, parse_quote};

use super::expression::{call, call_with_types, text};
use super::{children, literal};
use crate::load::manifest::{ErrorMode, Operation, Trigger};
use crate::model::handler::{
    ChangeTriggers, DaemonOptions, FilterSubject, FilterTest, Handler, HandlerCause, HandlerFilter,
    Predicate, ReconcileTimes, RetryOptions, StartDelay, TimerOptions, TimerSchedule,
};
use crate::model::operator::HandledKind;
use crate::model::param::{Param, ParamType};
use crate::model::webhook::{Webhook, WebhookEndpoint, WebhookRole};
use crate::rust::{RustPath, ident};

/// The method that registers the function that builds the state.
pub(super) const STATE: &str = "state";

/// The registration of one handler.
pub(super) struct Registration {
    register: &'static str,
    /// The types between the method and its arguments.
    types: Vec<RustPath>,
    /// The arguments before the function.
    declaration: Vec<Expr>,
    method: syn::Ident,
    param: Option<Expr>,
    /// The statements that make the parameter.
    setup: Vec<Stmt>,
    has_result: bool,
}

// === impl Registration ===

impl Registration {
    pub(super) fn new(register: &'static str, declaration: Vec<Expr>, method: &str) -> Self {
        Self {
            register,
            types: Vec::new(),
            declaration,
            method: ident(method),
            param: None,
            setup: Vec::new(),
            has_result: false,
        }
    }

    /// The value of the second argument of the method.
    ///
    /// `place` tells the handlers of a function apart.
    pub(super) fn with_param(self, param: Option<&Param>, place: usize) -> Self {
        let Some(param) = param else {
            return self;
        };
        let (value, setup) = param_value(param, &self.method, place);
        Self {
            param: Some(value),
            setup,
            ..self
        }
    }

    /// The statements before the call.
    pub(super) fn take_setup(&mut self) -> Vec<Stmt> {
        std::mem::take(&mut self.setup)
    }

    fn with_result(self, has_result: bool) -> Self {
        Self { has_result, ..self }
    }

    /// Calls the method that registers the handler.
    pub(super) fn call_on(self, receiver: Expr) -> Expr {
        let method = &self.method;
        let param = self.param.into_iter();
        let function = if self.register == STATE {
            parse_quote!(|cx| ::std::boxed::Box::pin(S::#method(cx #(, #param)*)))
        } else if self.has_result {
            parse_quote! {
                |state, cx| ::std::boxed::Box::pin(async move {
                    let result = state.#method(cx #(, #param)*).await?;
                    cx.set_result(&result)?;
                    ::std::result::Result::Ok(())
                })
            }
        } else {
            parse_quote!(|state, cx| ::std::boxed::Box::pin(state.#method(cx #(, #param)*)))
        };
        let arguments = self.declaration.into_iter().chain([function]);
        call_with_types(receiver, self.register, self.types, arguments)
    }

    fn with_types(self, types: Vec<RustPath>) -> Self {
        Self { types, ..self }
    }
}

pub(super) fn webhook(webhook: &Webhook, place: usize) -> Registration {
    let id = &webhook.id;
    let mut declaration: Expr = parse_quote!(::kopf_runtime::WebhookHandler::new(#id));
    if !webhook.operations.is_empty() {
        let operations = webhook.operations.iter().map(|operation| {
            RustPath::external(match operation {
                Operation::Create => "kopf_runtime::Operation::Create",
                Operation::Update => "kopf_runtime::Operation::Update",
                Operation::Delete => "kopf_runtime::Operation::Delete",
                Operation::Connect => "kopf_runtime::Operation::Connect",
            })
        });
        declaration = call(
            declaration,
            "operations",
            [parse_quote!([#(#operations),*])],
        );
    }
    declaration = match &webhook.endpoint {
        WebhookEndpoint::Main => declaration,
        WebhookEndpoint::Subresource(name) => call(declaration, "subresource", [text(name)]),
        WebhookEndpoint::All => call(declaration, "all_subresources", []),
    };
    for (method, set) in [
        ("side_effects", webhook.side_effects),
        ("ignore_failures", webhook.ignore_failures),
        ("persistent", webhook.persistent),
    ] {
        if set {
            declaration = call(declaration, method, []);
        }
    }
    if let Some(timeout) = webhook.timeout {
        declaration = call(declaration, "timeout", [duration(timeout)]);
    }
    if let Some(field) = &webhook.field {
        let path = text(&field.quoted());
        declaration = match value_tests(&webhook.filters, place) {
            (Some(value), _, _) => call(declaration, "value", [path, value]),
            (None, None, None) => call(declaration, "field", [path]),
            (None, old, new) => call(
                declaration,
                "transition",
                [path, optional(old), optional(new)],
            ),
        };
    }
    let declaration = other_filters(declaration, &webhook.filters, place);
    let register = match webhook.role {
        WebhookRole::Validate => "validate",
        WebhookRole::Mutate => "mutate",
    };
    Registration::new(register, vec![declaration], &webhook.method)
        .with_param(webhook.param.as_ref(), place)
}

/// Puts the items of a function before its statements.
pub(super) fn sort_setup(setup: &mut [Stmt]) {
    setup.sort_by_key(|statement| !matches!(statement, Stmt::Item(_)));
}

/// The value of a parameter in its type. What is not a literal of Rust is a static variable, which
/// the statements make when the operator starts.
fn param_value(param: &Param, method: &syn::Ident, place: usize) -> (Expr, Vec<Stmt>) {
    let value = &param.value;
    let literal = match &param.ty {
        ParamType::Text => text(value.as_str().unwrap_or_default()),
        ParamType::Integer => literal::integer(value.as_i64().unwrap_or_default()),
        ParamType::Float => literal::float(value.as_f64().unwrap_or_default()),
        ParamType::Flag => {
            let flag = value.as_bool().unwrap_or_default();
            parse_quote!(#flag)
        }
        ParamType::Json => {
            return static_param(
                place,
                &parse_quote!(::serde_json::Value),
                &literal::json(value),
            );
        }
        ParamType::Named(ty) => {
            let json = literal::json(value);
            let message = format!("`param` of `{method}` in kopf.yaml fits its type");
            let decoded = parse_quote!(::serde_json::from_value(#json).expect(#message));
            return static_param(place, &parse_quote!(#ty), &decoded);
        }
    };
    (literal, Vec::new())
}

fn static_param(place: usize, ty: &syn::Type, value: &Expr) -> (Expr, Vec<Stmt>) {
    let name = ident(&format!("PARAM_{place}"));
    let setup = vec![
        parse_quote! {
            static #name: ::std::sync::LazyLock<#ty> = ::std::sync::LazyLock::new(|| #value);
        },
        parse_quote!(::std::sync::LazyLock::force(&#name);),
    ];
    (parse_quote!(&#name), setup)
}

pub(super) fn handler(kind: &HandledKind, handler: &Handler, place: usize) -> Registration {
    let id = &handler.id;
    let mut arguments: Vec<Expr> = Vec::new();
    let mut types = Vec::new();
    let (register, new): (_, Expr) = match &handler.cause {
        HandlerCause::Change(change) => {
            let on = on(change);
            (
                "change",
                parse_quote!(::kopf_runtime::ChangeHandler::new(#id, #on)),
            )
        }
        HandlerCause::Field { field, within } => {
            let path = text(&field.quoted());
            let new: Expr = parse_quote!(::kopf_runtime::FieldHandler::new(#id, #path));
            let new = if within.triggers.is_empty() {
                new
            } else {
                call(new, "on", [on(within)])
            };
            ("field", new)
        }
        HandlerCause::Event { .. } => (
            "event",
            parse_quote!(::kopf_runtime::EventHandler::new(#id)),
        ),
        HandlerCause::Daemon(daemon) => ("daemon", daemon_declaration(id, daemon)),
        HandlerCause::Timer(timer) => ("timer", timer_declaration(id, timer)),
        HandlerCause::Index(indexing) => {
            let index = indexing.index.path();
            arguments.push(parse_quote!(#index));
            ("index", parse_quote!(::kopf_runtime::IndexHandler::new()))
        }
        HandlerCause::Reconcile(times) => {
            let marker = kind.children_type().unwrap_or_default();
            types.push(children::in_module(kind, &marker));
            ("reconcile", reconcile_declaration(id, times))
        }
        HandlerCause::Child(child) => {
            types.push(child.object.clone());
            (
                "on_child",
                parse_quote!(::kopf_runtime::ChildHandler::new(#id)),
            )
        }
    };
    let declaration = retry_options(new, &handler.retry);
    let declaration = field_filters(declaration, handler, place);
    let declaration = other_filters(declaration, &handler.filters, place);
    arguments.push(declaration);
    Registration::new(register, arguments, &handler.method)
        .with_types(types)
        .with_param(handler.param.as_ref(), place)
        .with_result(handler.result.is_some())
}

fn reconcile_declaration(id: &str, times: &ReconcileTimes) -> Expr {
    let mut declaration: Expr = parse_quote!(::kopf_runtime::ReconcileHandler::new(#id));
    if let Some(interval) = times.interval {
        declaration = call(declaration, "interval", [duration(interval)]);
    }
    if times.status {
        declaration = call(declaration, "on_status_changes", []);
    }
    declaration
}

fn daemon_declaration(id: &str, daemon: &DaemonOptions) -> Expr {
    let new: Expr = parse_quote!(::kopf_runtime::DaemonHandler::new(#id));
    let mut declaration = initial_delay(new, daemon.initial_delay.as_ref());
    for (option, time) in [
        ("cancellation_backoff", daemon.cancellation_backoff),
        ("cancellation_timeout", daemon.cancellation_timeout),
        ("cancellation_polling", daemon.cancellation_polling),
    ] {
        if let Some(time) = time {
            declaration = call(declaration, option, [duration(time)]);
        }
    }
    declaration
}

fn timer_declaration(id: &str, timer: &TimerOptions) -> Expr {
    let declaration = match timer.schedule {
        TimerSchedule::Every {
            interval,
            sharp,
            idle,
        } => {
            let interval = duration(interval);
            let mut every: Expr = parse_quote!(::kopf_runtime::TimerHandler::every(#id, #interval));
            if sharp {
                every = call(every, "sharp", []);
            }
            if let Some(idle) = idle {
                every = call(every, "idle", [duration(idle)]);
            }
            every
        }
        TimerSchedule::Idle(idle) => {
            let idle = duration(idle);
            parse_quote!(::kopf_runtime::TimerHandler::when_idle(#id, #idle))
        }
    };
    initial_delay(declaration, timer.initial_delay.as_ref())
}

fn initial_delay(declaration: Expr, delay: Option<&StartDelay>) -> Expr {
    match delay {
        None => declaration,
        Some(StartDelay::Fixed(delay)) => call(declaration, "initial_delay", [duration(*delay)]),
        Some(StartDelay::Computed(name)) => {
            let name = ident(name);
            let delay = parse_quote! {
                ::kopf_runtime::predicate::delay(state, |state, object| state.#name(object))
            };
            call(declaration, "initial_delay_by", [delay])
        }
    }
}

fn on(change: &ChangeTriggers) -> Expr {
    let words = change.triggers.iter().map(|trigger| match trigger {
        Trigger::Create => "create",
        Trigger::Update => "update",
        Trigger::Delete if change.optional => "optional_delete",
        Trigger::Delete => "delete",
        Trigger::Resume if change.deleted => "resume_deleted",
        Trigger::Resume => "resume",
        Trigger::Field | Trigger::Event | Trigger::Reconcile | Trigger::Child => {
            unreachable!("none of them is a kind of change")
        }
    });
    let mut words = words.map(|word| -> Expr {
        let word = ident(word);
        parse_quote!(::kopf_runtime::On::#word())
    });
    let first = words.next().expect("a change handler has a trigger");
    words.fold(first, |on, word| call(on, "or", [word]))
}

pub(super) fn retry_options(mut declaration: Expr, retry: &RetryOptions) -> Expr {
    if let Some(errors) = retry.errors {
        let mode = ident(match errors {
            ErrorMode::Ignored => "Ignored",
            ErrorMode::Temporary => "Temporary",
            ErrorMode::Permanent => "Permanent",
        });
        let mode = parse_quote!(::kopf_runtime::ErrorMode::#mode);
        declaration = call(declaration, "errors", [mode]);
    }
    if let Some(timeout) = retry.timeout {
        declaration = call(declaration, "timeout", [duration(timeout)]);
    }
    if let Some(retries) = retry.retries {
        declaration = call(declaration, "retries", [number(retries.into())]);
    }
    if let Some(backoff) = retry.backoff {
        declaration = call(declaration, "backoff", [duration(backoff)]);
    }
    declaration
}

/// A number without the suffix of its type.
pub(super) fn number(number: u64) -> Expr {
    let literal = Literal::u64_unsuffixed(number);
    parse_quote!(#literal)
}

pub(super) fn duration(duration: Duration) -> Expr {
    let seconds = Literal::u64_unsuffixed(duration.as_secs());
    if duration.subsec_nanos() == 0 {
        parse_quote!(::std::time::Duration::from_secs(#seconds))
    } else if duration.subsec_nanos().is_multiple_of(1_000_000) {
        let millis = Literal::u128_unsuffixed(duration.as_millis());
        parse_quote!(::std::time::Duration::from_millis(#millis))
    } else {
        let nanos = Literal::u32_unsuffixed(duration.subsec_nanos());
        parse_quote!(::std::time::Duration::new(#seconds, #nanos))
    }
}

/// The filters on the handler's field.
fn field_filters(declaration: Expr, handler: &Handler, place: usize) -> Expr {
    let (value, old, new) = value_tests(&handler.filters, place);
    let without_change = matches!(
        handler.cause,
        HandlerCause::Event { .. } | HandlerCause::Index(_)
    ) || handler.is_background();
    if without_change && let Some(field) = handler.field() {
        let path = text(&field.quoted());
        let present = || parse_quote!(::kopf_runtime::ValueTest::Present);
        let value = value.unwrap_or_else(present);
        return call(declaration, "value", [path, value]);
    }
    match (value, old, new) {
        (Some(value), _, _) => call(declaration, "value", [value]),
        (None, None, None) => declaration,
        (None, old, new) => call(declaration, "transition", [optional(old), optional(new)]),
    }
}

fn optional(test: Option<Expr>) -> Expr {
    match test {
        None => parse_quote!(::std::option::Option::None),
        Some(test) => parse_quote!(::std::option::Option::Some(#test.into())),
    }
}

/// The tests for the value, the old and the new value of a field.
fn value_tests(
    filters: &[HandlerFilter],
    place: usize,
) -> (Option<Expr>, Option<Expr>, Option<Expr>) {
    let test = |subject: &FilterSubject| -> Option<Expr> {
        let filter = filters.iter().find(|filter| filter.subject == *subject)?;
        Some(combination(&filter.expected, &|test| {
            value_test(test, place)
        }))
    };
    (
        test(&FilterSubject::Value),
        test(&FilterSubject::Old),
        test(&FilterSubject::New),
    )
}

fn value_test(test: &FilterTest, place: usize) -> Expr {
    match test {
        FilterTest::Present => parse_quote!(::kopf_runtime::ValueTest::Present),
        FilterTest::Absent => parse_quote!(::kopf_runtime::ValueTest::Absent),
        FilterTest::Equals(value) => {
            let value = json_argument(value);
            parse_quote!(::kopf_runtime::ValueTest::Equals(#value))
        }
        FilterTest::Predicate(test) => predicate("value", &["value", "cx"], test, place),
    }
}

/// A condition, or conditions that are combined.
fn combination(tests: &Combined<FilterTest>, test: &impl Fn(&FilterTest) -> Expr) -> Expr {
    let (variant, parts) = match tests {
        Combined::One(one) => return test(one),
        Combined::Not(part) => {
            let part = part_of(part, test);
            return parse_quote!(::kopf_runtime::Combined::Not(::std::boxed::Box::new(#part)));
        }
        Combined::All(parts) => ("All", parts),
        Combined::Any(parts) => ("Any", parts),
        Combined::NoneOf(parts) => ("NoneOf", parts),
    };
    let variant = ident(variant);
    let parts = parts.iter().map(|part| part_of(part, test));
    parse_quote!(::kopf_runtime::Combined::#variant(vec![#(#parts),*]))
}

/// A part of a combination, in the type of combinations.
fn part_of(part: &Combined<FilterTest>, test: &impl Fn(&FilterTest) -> Expr) -> Expr {
    let expression = combination(part, test);
    match part {
        Combined::One(_) => parse_quote!(#expression.into()),
        _ => expression,
    }
}

/// A filter that calls a method of the state.
fn predicate(function: &str, arguments: &[&str], predicate: &Predicate, place: usize) -> Expr {
    let (function, method) = (ident(function), ident(&predicate.method));
    let arguments: Vec<syn::Ident> = arguments.iter().map(|name| ident(name)).collect();
    // The handler has the same parameter, and makes its static variable.
    let param = predicate.param.as_ref();
    let param = param.map(|param| param_value(param, &method, place).0);
    let param = param.into_iter();
    parse_quote! {
        ::kopf_runtime::predicate::#function(
            state,
            |state #(, #arguments)*| state.#method(#(#arguments),* #(, #param)*),
        )
    }
}

/// Adds the filters on labels, annotations and the whole object.
fn other_filters(declaration: Expr, filters: &[HandlerFilter], place: usize) -> Expr {
    let text_test = |test: &FilterTest| text_test(test, place);
    filters.iter().fold(declaration, |declaration, filter| {
        match (&filter.subject, &filter.expected) {
            (FilterSubject::Label(key), expected) => call(
                declaration,
                "label",
                [text(key), combination(expected, &text_test)],
            ),
            (FilterSubject::Annotation(key), expected) => call(
                declaration,
                "annotation",
                [text(key), combination(expected, &text_test)],
            ),
            (FilterSubject::Object, Combined::One(test)) => {
                call(declaration, "when", [object_test(test, place)])
            }
            (FilterSubject::Object, tests) => {
                let when = |test: &FilterTest| -> Expr {
                    let test = object_test(test, place);
                    parse_quote!(::kopf_runtime::WhenTest::new(#test))
                };
                call(declaration, "when_combined", [combination(tests, &when)])
            }
            (FilterSubject::Value | FilterSubject::Old | FilterSubject::New, _) => declaration,
        }
    })
}

/// Only functions decide about the whole object.
fn object_test(test: &FilterTest, place: usize) -> Expr {
    match test {
        FilterTest::Predicate(test) => predicate("when", &["cx"], test, place),
        FilterTest::Present => parse_quote!(|_| true),
        FilterTest::Absent | FilterTest::Equals(_) => parse_quote!(|_| false),
    }
}

fn text_test(expected: &FilterTest, place: usize) -> Expr {
    match expected {
        FilterTest::Present => parse_quote!(::kopf_runtime::TextTest::Present),
        FilterTest::Absent => parse_quote!(::kopf_runtime::TextTest::Absent),
        FilterTest::Equals(value) => {
            let text = value.as_str().unwrap_or_default();
            parse_quote!(::kopf_runtime::TextTest::Equals(#text.to_owned()))
        }
        FilterTest::Predicate(test) => predicate("text", &["value", "cx"], test, place),
    }
}

/// A JSON value as an argument.
fn json_argument(value: &serde_json::Value) -> Expr {
    match value {
        serde_json::Value::String(text) => parse_quote!(#text.into()),
        other => literal::json(other),
    }
}
