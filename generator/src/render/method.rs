//! The methods of a kind's trait: names, signatures and doc comments.

use std::time::Duration;

use syn::parse_quote;

use crate::load::manifest::{Operation, Trigger};
use crate::model::handler::{
    ChangeTriggers, FilterSubject, Handler, HandlerCause, HandlerFilter, Predicate, ReconcileTimes,
    TimerSchedule, TypedField,
};
use crate::model::method::{FilterOwner, MethodRole};
use crate::model::operator::HandledKind;
use crate::model::param::ParamType;
use crate::model::phrases::{self, article};
use crate::model::webhook::{Webhook, WebhookEndpoint, WebhookRole};
use crate::render::children;
use crate::render::layout::wrap;
use crate::rust::{RustPath, RustType};

/// The width of a doc comment inside of a trait or an `impl`; indentation and slashes take eight
/// columns.
pub(super) const DOC_WIDTH: usize = 92;

/// A method that the user's operator implements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TraitMethod {
    /// Its name.
    pub name: String,
    /// The doc comment.
    pub doc: Vec<String>,
    /// The signature.
    pub shape: MethodSignature,
}

/// The arguments and the result of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MethodSignature {
    /// `change(&self, cx: &mut Context) -> HandlerResult`, asynchronous.
    Handler {
        /// The context.
        context: ContextType,
        /// The type of the parameter, if it takes one.
        param: Option<ParamType>,
        /// The type of the result, if it returns one.
        result: Option<RustType>,
    },
    /// `delay(&self, object: &Kind) -> Duration`.
    Delay {
        /// The type of the object.
        object: RustType,
    },
    /// `accepts(&self, value: Type, cx: &FilterContext<Kind>) -> bool`.
    Predicate {
        /// The value that it decides about; none if it decides about the whole object.
        value: Option<TestedValue>,
        /// The type of the object.
        object: RustType,
        /// The type of the parameter, if it takes one.
        param: Option<ParamType>,
    },
}

/// The context type of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContextType {
    /// `ChangeContext<Kind>`.
    Change(RustType),
    /// `FieldContext<Kind, Type>`.
    Field(RustType, RustType),
    /// `EventContext<Kind>`.
    Event(RustType),
    /// `ValidationContext<Kind>`, or of JSON.
    Validation(RustType),
    /// `MutationContext<Kind>`, or of JSON.
    Mutation(RustType),
    /// `DaemonContext<Kind>`.
    Daemon(RustType),
    /// `TimerContext<Kind>`.
    Timer(RustType),
    /// `IndexContext<Kind>`, for the index of this type.
    Index(RustType, RustType),
    /// The alias of `ReconcileContext<Kind, KindChildren>`.
    Reconcile(RustType),
    /// `ChildContext<Kind, Child>`.
    Child(RustType, RustType),
    /// `StartupContext`, for a function that returns the state.
    State,
    /// `StartupContext`.
    Startup,
    /// `CleanupContext`.
    Cleanup,
    /// `LoginContext`.
    Login,
    /// `ProbeContext`.
    Probe,
}

/// The type of the value that a predicate decides about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TestedValue {
    /// `Option<&str>`.
    Text,
    /// `Option<&Type>`.
    Field(RustType),
}

/// The methods of a kind without duplicates, predicates after the handlers that use them.
pub(super) fn methods(kind: &HandledKind) -> Vec<TraitMethod> {
    let mut methods: Vec<TraitMethod> = Vec::new();
    for method in kind.method_roles().map(|it| method(kind, it)) {
        match methods.iter_mut().find(|known| known.name == method.name) {
            None => methods.push(method),
            Some(known) => {
                for line in method.doc {
                    if !known.doc.contains(&line) {
                        known.doc.push(line);
                    }
                }
            }
        }
    }
    methods
}

fn method(kind: &HandledKind, method: MethodRole<'_>) -> TraitMethod {
    match method {
        MethodRole::Handler(handler) => handler_method(kind, handler),
        MethodRole::Delay { name, handler } => delay_method(kind, name, handler),
        MethodRole::Webhook(webhook) => webhook_method(kind, webhook),
        MethodRole::Predicate {
            predicate,
            filter,
            owner,
        } => predicate_method(kind, predicate, filter, owner),
    }
}

/// The context of a handler of this kind.
#[must_use]
pub(super) fn context(kind: &HandledKind, handler: &Handler) -> ContextType {
    let object = object(kind);
    match &handler.cause {
        HandlerCause::Change(_) => ContextType::Change(object),
        HandlerCause::Field { field, .. } => ContextType::Field(object, field.rust_type.clone()),
        HandlerCause::Event { .. } => ContextType::Event(object),
        HandlerCause::Daemon(_) => ContextType::Daemon(object),
        HandlerCause::Timer(_) => ContextType::Timer(object),
        HandlerCause::Index(indexing) => {
            ContextType::Index(object, RustType::named(indexing.index.path()))
        }
        HandlerCause::Reconcile(_) => {
            let alias = children::in_module(kind, &kind.reconcile_context());
            ContextType::Reconcile(RustType::named(alias))
        }
        HandlerCause::Child(child) => {
            ContextType::Child(object, RustType::named(child.object.clone()))
        }
    }
}

fn handler_method(kind: &HandledKind, handler: &Handler) -> TraitMethod {
    TraitMethod {
        name: handler.method.clone(),
        doc: wrap(&sentence(kind, handler), DOC_WIDTH),
        shape: MethodSignature::Handler {
            context: context(kind, handler),
            param: handler.param.as_ref().map(|param| param.ty.clone()),
            result: handler.result.clone(),
        },
    }
}

fn delay_method(kind: &HandledKind, name: &str, handler: &Handler) -> TraitMethod {
    let text = format!(
        "The delay before `{}` starts for {}.",
        handler.method,
        phrases::object(kind)
    );
    TraitMethod {
        name: name.to_owned(),
        doc: wrap(&text, DOC_WIDTH),
        shape: MethodSignature::Delay {
            object: object(kind),
        },
    }
}

/// The type of the objects of a kind.
fn object(kind: &HandledKind) -> RustType {
    RustType::named(kind.object_path())
}

/// The type of the objects that a webhook reviews; JSON if its requests contain other objects.
fn reviewed(kind: &HandledKind, webhook: &Webhook) -> RustType {
    if webhook.endpoint.has_the_object() {
        object(kind)
    } else {
        RustType::json()
    }
}

fn webhook_method(kind: &HandledKind, webhook: &Webhook) -> TraitMethod {
    let object = reviewed(kind, webhook);
    TraitMethod {
        name: webhook.method.clone(),
        doc: wrap(&webhook_sentence(kind, webhook), DOC_WIDTH),
        shape: MethodSignature::Handler {
            context: match webhook.role {
                WebhookRole::Validate => ContextType::Validation(object),
                WebhookRole::Mutate => ContextType::Mutation(object),
            },
            param: webhook.param.as_ref().map(|param| param.ty.clone()),
            result: None,
        },
    }
}

fn webhook_sentence(kind: &HandledKind, webhook: &Webhook) -> String {
    let object = format!("{} {}", article(&kind.type_name), kind.type_name);
    let words: Vec<_> = webhook
        .operations
        .iter()
        .map(|operation| match operation {
            Operation::Create => "created",
            Operation::Update => "changed",
            Operation::Delete => "deleted",
            Operation::Connect => "connected to",
        })
        .collect();
    let happens = match words.split_last() {
        None => "stored".to_owned(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    };
    let what = match &webhook.endpoint {
        WebhookEndpoint::Main => object,
        WebhookEndpoint::Subresource(name) => format!("the `{name}` subresource of {object}"),
        WebhookEndpoint::All => format!("{object} or one of its subresources"),
    };
    match webhook.role {
        WebhookRole::Validate => format!("Decides whether {what} may be {happens}."),
        WebhookRole::Mutate => format!("Can change {what} before it is {happens}."),
    }
}

fn predicate_method(
    kind: &HandledKind,
    predicate: &Predicate,
    filter: &HandlerFilter,
    owner: FilterOwner<'_>,
) -> TraitMethod {
    let object = match owner {
        FilterOwner::Handler(_) => object(kind),
        FilterOwner::Webhook(webhook) => reviewed(kind, webhook),
    };
    let field = owner.field();
    let typed = || {
        field.map_or(TestedValue::Text, |field| {
            TestedValue::Field(field.rust_type.clone())
        })
    };
    let (value, words) = match &filter.subject {
        FilterSubject::Object if object == RustType::json() => {
            (None, "the reviewed object".to_owned())
        }
        FilterSubject::Object => {
            let object = format!("{} {}", article(&kind.type_name), kind.type_name);
            (None, object)
        }
        FilterSubject::Label(key) => (Some(TestedValue::Text), format!("the label `{key}`")),
        FilterSubject::Annotation(key) => {
            (Some(TestedValue::Text), format!("the annotation `{key}`"))
        }
        FilterSubject::Value => (Some(typed()), field_words("", field)),
        FilterSubject::Old => (Some(typed()), field_words("the old ", field)),
        FilterSubject::New => (Some(typed()), field_words("the new ", field)),
    };
    let caller = owner.method();
    let doc = format!("Whether the filter of `{caller}` accepts {words}.");
    TraitMethod {
        name: predicate.method.clone(),
        doc: wrap(&doc, DOC_WIDTH),
        shape: MethodSignature::Predicate {
            value,
            object,
            param: predicate.param.as_ref().map(|param| param.ty.clone()),
        },
    }
}

fn field_words(prefix: &str, field: Option<&TypedField>) -> String {
    field.map_or_else(
        || format!("{prefix}value"),
        |field| format!("{prefix}`{field}`"),
    )
}

fn sentence(kind: &HandledKind, handler: &Handler) -> String {
    let object = phrases::object(kind);
    match &handler.cause {
        HandlerCause::Change(change) => format!("Called when {object} {}.", occasions(change)),
        HandlerCause::Field { field, within } if within.triggers.is_empty() => {
            format!("Called when `{field}` of {object} changes.")
        }
        HandlerCause::Field { field, within } if within.triggers.iter().eq([&Trigger::Update]) => {
            format!("Called when `{field}` of {object} is changed by an update.")
        }
        HandlerCause::Field { field, within } => {
            format!(
                "Called when {object} {}, with `{field}`.",
                occasions(within)
            )
        }
        HandlerCause::Event { field: None } => {
            format!("Called for every watch event of {object}.")
        }
        HandlerCause::Event { field: Some(field) } => {
            format!("Called for every watch event of {object} with `{field}`.")
        }
        HandlerCause::Daemon(daemon) => {
            let field = with(daemon.field.as_ref());
            format!("Runs for {object}{field} as long as the object exists.")
        }
        HandlerCause::Timer(timer) => {
            let field = with(timer.field.as_ref());
            let schedule = timer_schedule(&timer.schedule);
            format!("Called for {object}{field} {schedule}.")
        }
        HandlerCause::Index(indexing) => {
            let (field, name) = (with(indexing.field.as_ref()), &indexing.index.name);
            format!("Returns the keys and values of {object}{field} in the index `{name}`.")
        }
        HandlerCause::Reconcile(times) => reconcile_sentence(kind, times),
        HandlerCause::Child(child) => format!(
            "Called when {} {} of {object} was changed, appeared or is gone.",
            article(&child.kind),
            child.kind
        ),
    }
}

fn reconcile_sentence(kind: &HandledKind, times: &ReconcileTimes) -> String {
    let object = phrases::object(kind);
    let listed = |names: Vec<String>| match names.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        [others @ .., last] => Some(format!("{} or {last}", others.join(", "))),
    };
    let children = kind.children.iter().map(|it| it.related.kind.clone());
    let children = listed(children.collect());
    let uses = kind.uses.iter().map(|it| it.related.kind.clone());
    let uses = listed(uses.collect());
    let status = times.status.then_some(" (its status included)");
    let children = children.map(|it| format!("when its {it} is changed or gone"));
    let uses = uses.map(|it| format!("when {} {it} that it uses changes", article(&it)));
    let interval = times
        .interval
        .map(|it| format!("{} after the last call", time(it)));
    let rest: Vec<String> = children.into_iter().chain(uses).chain(interval).collect();
    let rest = match rest.as_slice() {
        [] => String::new(),
        [only] => format!(", and {only}"),
        [others @ .., last] => format!(", {}, and {last}", others.join(", ")),
    };
    format!(
        "Called when {object} is created, changed{} or found at the start{rest}.",
        status.unwrap_or_default()
    )
}

fn with(field: Option<&TypedField>) -> String {
    field.map_or_else(String::new, |field| format!(" with `{field}`"))
}

/// The schedule of a timer in words.
#[must_use]
pub(super) fn timer_schedule(schedule: &TimerSchedule) -> String {
    match schedule {
        TimerSchedule::Every {
            interval,
            idle: None,
            ..
        } => format!("every {}", time(*interval)),
        TimerSchedule::Every {
            interval,
            idle: Some(idle),
            ..
        } => format!(
            "every {}, while it has not changed for {}",
            time(*interval),
            time(*idle)
        ),
        TimerSchedule::Idle(idle) => format!("once it has not changed for {}", time(*idle)),
    }
}

/// A duration in the largest unit that needs no fraction.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        _ if duration.subsec_nanos() > 0 || seconds == 0 => format!("{duration:?}"),
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

fn occasions(change: &ChangeTriggers) -> String {
    let mut words: Vec<_> = change
        .triggers
        .iter()
        .map(|trigger| match trigger {
            Trigger::Create => "is created",
            Trigger::Update => "is changed",
            Trigger::Delete => "is being deleted",
            Trigger::Resume => "already exists when the operator starts",
            Trigger::Field | Trigger::Event | Trigger::Reconcile | Trigger::Child => {
                unreachable!("none of them is a kind of change")
            }
        })
        .collect();
    let last = words.pop().unwrap_or("changes");
    if words.is_empty() {
        last.to_owned()
    } else {
        format!("{} or {last}", words.join(", "))
    }
}

// === impl MethodSignature ===

impl MethodSignature {
    /// Whether it is a function without `self`, which returns the state.
    pub(super) fn builds_state(&self) -> bool {
        matches!(
            self,
            Self::Handler {
                context: ContextType::State,
                ..
            }
        )
    }

    /// The type of the last argument, `param`.
    pub(super) const fn param(&self) -> Option<&ParamType> {
        match self {
            Self::Handler { param, .. } | Self::Predicate { param, .. } => param.as_ref(),
            Self::Delay { .. } => None,
        }
    }

    /// The names and types of the arguments, and the type of the result, in a trait.
    pub(super) fn parts(&self) -> (Vec<(&'static str, syn::Type)>, syn::Type) {
        let (mut arguments, result) = self.fixed_parts();
        arguments.extend(self.param().map(|param| ("param", param_type(param))));
        (arguments, result)
    }

    /// As [`parts`](Self::parts), without the parameter.
    fn fixed_parts(&self) -> (Vec<(&'static str, syn::Type)>, syn::Type) {
        match self {
            Self::Handler {
                context, result, ..
            } => {
                let (argument, output) = (context.ty(), context.output(result.as_ref()));
                let output: syn::Type = if self.builds_state() {
                    parse_quote!(#output<Self>)
                } else {
                    parse_quote!(#output)
                };
                let result = parse_quote! {
                    impl ::std::future::Future<Output = #output> + ::std::marker::Send
                };
                (vec![("cx", parse_quote!(&mut #argument))], result)
            }
            Self::Delay { object } => (
                vec![("object", parse_quote!(&#object))],
                parse_quote!(::std::time::Duration),
            ),
            Self::Predicate { value, object, .. } => {
                let value = value.iter().map(|value| ("value", value.syntax()));
                let context = filter_context(object);
                let context = ("cx", parse_quote!(&#context));
                (value.chain([context]).collect(), parse_quote!(bool))
            }
        }
    }

    /// Visits the paths of the types.
    pub(super) fn for_each_path(&self, visit: &mut impl FnMut(&RustPath)) {
        match self.param() {
            Some(ParamType::Named(ty)) => ty.for_each_path(visit),
            Some(ParamType::Json) => RustType::json().for_each_path(visit),
            _ => {}
        }
        match self {
            Self::Handler {
                context, result, ..
            } => {
                context.ty().for_each_path(visit);
                context.output(result.as_ref()).for_each_path(visit);
            }
            Self::Delay { object } => object.for_each_path(visit),
            Self::Predicate { value, object, .. } => {
                if let Some(TestedValue::Field(ty)) = value {
                    ty.for_each_path(visit);
                }
                filter_context(object).for_each_path(visit);
            }
        }
    }
}

// === impl ContextType ===

impl ContextType {
    /// The type of the context.
    #[must_use]
    pub(super) fn ty(&self) -> RustType {
        let (name, arguments) = match self {
            Self::Reconcile(alias) => return alias.clone(),
            Self::Child(object, child) => ("ChildContext", vec![object, child]),
            Self::Change(object) => ("ChangeContext", vec![object]),
            Self::Field(object, field) => ("FieldContext", vec![object, field]),
            Self::Event(object) => ("EventContext", vec![object]),
            Self::Validation(object) => ("ValidationContext", vec![object]),
            Self::Mutation(object) => ("MutationContext", vec![object]),
            Self::Daemon(object) => ("DaemonContext", vec![object]),
            Self::Timer(object) => ("TimerContext", vec![object]),
            Self::Index(object, _) => ("IndexContext", vec![object]),
            Self::State | Self::Startup => ("StartupContext", vec![]),
            Self::Cleanup => ("CleanupContext", vec![]),
            Self::Login => ("LoginContext", vec![]),
            Self::Probe => ("ProbeContext", vec![]),
        };
        RustType::generic(&runtime(name), arguments.into_iter().cloned())
    }

    /// The return type of the method, with the type of its result if it returns one.
    #[must_use]
    pub(super) fn output(&self, result: Option<&RustType>) -> RustType {
        if let Some(result) = result {
            return RustType::generic(&runtime("HandlerResult"), [result.clone()]);
        }
        match self {
            Self::Change(_)
            | Self::Field(..)
            | Self::Event(_)
            | Self::Daemon(_)
            | Self::Timer(_)
            | Self::Reconcile(_)
            | Self::Child(..)
            | Self::State
            | Self::Startup
            | Self::Cleanup
            | Self::Probe => RustType::external(&runtime("HandlerResult")),
            Self::Login => RustType::external(&runtime("LoginResult")),
            Self::Validation(_) | Self::Mutation(_) => {
                RustType::external(&runtime("AdmissionResult"))
            }
            Self::Index(_, index) => RustType::generic(&runtime("IndexResult"), [index.clone()]),
        }
    }
}

fn runtime(name: &str) -> String {
    format!("kopf_runtime::{name}")
}

/// The context of filters.
pub(super) fn filter_context(object: &RustType) -> RustType {
    RustType::generic(&runtime("FilterContext"), [object.clone()])
}

fn param_type(param: &ParamType) -> syn::Type {
    match param {
        ParamType::Text => parse_quote!(&str),
        ParamType::Integer => parse_quote!(i64),
        ParamType::Float => parse_quote!(f64),
        ParamType::Flag => parse_quote!(bool),
        ParamType::Json => parse_quote!(&::serde_json::Value),
        ParamType::Named(ty) => parse_quote!(&#ty),
    }
}

// === impl TestedValue ===

impl TestedValue {
    fn syntax(&self) -> syn::Type {
        match self {
            Self::Text => parse_quote!(::std::option::Option<&str>),
            Self::Field(field) => parse_quote!(::std::option::Option<&#field>),
        }
    }
}
