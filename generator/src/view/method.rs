//! The methods of a kind's trait: names, signatures and doc comments.

use std::fmt;
use std::time::Duration;

use crate::load::manifest::{Operation, Trigger};
use crate::model::handler::{
    ChangeTriggers, FilterSubject, FilterTest, Handler, HandlerCause, HandlerFilter, ImportedType,
    TimerSchedule, TypedField,
};
use crate::model::operator::HandledKind;
use crate::model::webhook::{Webhook, WebhookEndpoint, WebhookRole};
use crate::view::layout::wrap;
use crate::view::phrases::{self, article};

/// The width of a doc comment inside of a trait or an `impl`; indentation and slashes take eight
/// columns.
pub(super) const DOC_WIDTH: usize = 92;

/// The object type of a webhook whose requests contain other objects than those of its kind.
pub(super) const JSON: &str = "serde_json::Value";

/// A method that the user's operator implements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraitMethod {
    /// Its name.
    pub name: String,
    /// The doc comment.
    pub doc: Vec<String>,
    /// The signature.
    pub shape: MethodSignature,
}

/// The arguments and the result of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodSignature {
    /// `change(&self, cx: &mut Context) -> HandlerResult`, asynchronous.
    Handler {
        /// The context.
        context: ContextType,
    },
    /// `delay(&self, object: &Kind) -> Duration`.
    Delay {
        /// The type of the object.
        object: PredicateArgument,
    },
    /// `accepts(&self, argument: Type) -> bool`.
    Predicate {
        /// The name of the argument.
        argument: &'static str,
        /// Its type.
        argument_type: PredicateArgument,
    },
}

/// The context type of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextType {
    /// `Change<Kind>`.
    Change(String),
    /// `FieldChange<Kind, Type>`.
    Field(String, ImportedType),
    /// `Seen<Kind>`.
    Event(String),
    /// `Validation<Kind>`, or of JSON.
    Validation(String),
    /// `Mutation<Kind>`, or of JSON.
    Mutation(String),
    /// `Daemon<Kind>`.
    Daemon(String),
    /// `Tick<Kind>`.
    Timer(String),
    /// `Indexing<Kind>`, for the index of this type.
    Index(String, String),
    /// `Startup`.
    Startup,
    /// `Cleanup`.
    Cleanup,
    /// `Login`.
    Login,
    /// `Probe`.
    Probe,
}

/// The argument type of a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PredicateArgument {
    /// `&Kind`.
    Object(String),
    /// `Option<&str>`.
    Text,
    /// `Option<&Type>`.
    Field(ImportedType),
}

/// The methods of a kind without duplicates, predicates after the handlers that use them.
#[must_use]
pub fn methods(kind: &HandledKind) -> Vec<TraitMethod> {
    let mut methods: Vec<TraitMethod> = Vec::new();
    let handlers = kind
        .handlers
        .iter()
        .map(|handler| handler_method(kind, handler));
    let predicates = kind.handlers.iter().flat_map(|handler| {
        predicate_methods(
            &kind.type_name,
            &handler.method,
            &handler.filters,
            handler.field(),
        )
    });
    let webhooks = kind
        .webhooks
        .iter()
        .map(|webhook| webhook_method(kind, webhook));
    let webhook_predicates = kind.webhooks.iter().flat_map(|webhook| {
        predicate_methods(
            reviewed(kind, webhook),
            &webhook.method,
            &webhook.filters,
            webhook.field.as_ref(),
        )
    });
    let delays = kind
        .handlers
        .iter()
        .filter_map(|handler| delay_method(kind, handler));
    let all = handlers
        .chain(predicates)
        .chain(delays)
        .chain(webhooks)
        .chain(webhook_predicates);
    for method in all {
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

/// The context of a handler of this kind.
#[must_use]
pub fn context(kind: &HandledKind, handler: &Handler) -> ContextType {
    let object = kind.type_name.clone();
    match &handler.cause {
        HandlerCause::Change(_) => ContextType::Change(object),
        HandlerCause::Field { field, .. } => ContextType::Field(object, field.rust_type.clone()),
        HandlerCause::Event { .. } => ContextType::Event(object),
        HandlerCause::Daemon(_) => ContextType::Daemon(object),
        HandlerCause::Timer(_) => ContextType::Timer(object),
        HandlerCause::Index(indexing) => {
            ContextType::Index(object, indexing.index.type_name.clone())
        }
    }
}

fn handler_method(kind: &HandledKind, handler: &Handler) -> TraitMethod {
    TraitMethod {
        name: handler.method.clone(),
        doc: wrap(&sentence(kind, handler), DOC_WIDTH),
        shape: MethodSignature::Handler {
            context: context(kind, handler),
        },
    }
}

fn delay_method(kind: &HandledKind, handler: &Handler) -> Option<TraitMethod> {
    let name = handler.computed_delay()?;
    let object = &kind.type_name;
    let text = format!(
        "The delay before `{}` starts for {}.",
        handler.method,
        phrases::object(kind)
    );
    Some(TraitMethod {
        name: name.to_owned(),
        doc: wrap(&text, DOC_WIDTH),
        shape: MethodSignature::Delay {
            object: PredicateArgument::Object(object.clone()),
        },
    })
}

/// The type of the objects that a webhook reviews.
fn reviewed<'a>(kind: &'a HandledKind, webhook: &Webhook) -> &'a str {
    if webhook.endpoint.has_the_object() {
        &kind.type_name
    } else {
        JSON
    }
}

fn webhook_method(kind: &HandledKind, webhook: &Webhook) -> TraitMethod {
    let object = reviewed(kind, webhook).to_owned();
    TraitMethod {
        name: webhook.method.clone(),
        doc: wrap(&webhook_sentence(kind, webhook), DOC_WIDTH),
        shape: MethodSignature::Handler {
            context: match webhook.role {
                WebhookRole::Validate => ContextType::Validation(object),
                WebhookRole::Mutate => ContextType::Mutation(object),
            },
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

fn predicate_methods(
    object: &str,
    caller: &str,
    filters: &[HandlerFilter],
    field: Option<&TypedField>,
) -> Vec<TraitMethod> {
    let mut methods = Vec::new();
    for filter in filters {
        let FilterTest::Predicate(name) = &filter.expected else {
            continue;
        };
        let typed = || {
            field.map_or(PredicateArgument::Text, |field| {
                PredicateArgument::Field(field.rust_type.clone())
            })
        };
        let (argument, argument_type, subject) = match &filter.subject {
            FilterSubject::Object => (
                "object",
                PredicateArgument::Object(object.to_owned()),
                if object == JSON {
                    "the reviewed object".to_owned()
                } else {
                    format!("{} {object}", article(object))
                },
            ),
            FilterSubject::Label(key) => (
                "value",
                PredicateArgument::Text,
                format!("the label `{key}`"),
            ),
            FilterSubject::Annotation(key) => (
                "value",
                PredicateArgument::Text,
                format!("the annotation `{key}`"),
            ),
            FilterSubject::Value => ("value", typed(), field_words("", field)),
            FilterSubject::Old => ("value", typed(), field_words("the old ", field)),
            FilterSubject::New => ("value", typed(), field_words("the new ", field)),
        };
        methods.push(TraitMethod {
            name: name.clone(),
            doc: wrap(
                &format!("Whether the filter of `{caller}` accepts {subject}."),
                DOC_WIDTH,
            ),
            shape: MethodSignature::Predicate {
                argument,
                argument_type,
            },
        });
    }
    methods
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
    }
}

fn with(field: Option<&TypedField>) -> String {
    field.map_or_else(String::new, |field| format!(" with `{field}`"))
}

/// The schedule of a timer in words.
#[must_use]
pub fn timer_schedule(schedule: &TimerSchedule) -> String {
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
            Trigger::Field | Trigger::Event => unreachable!("neither is a kind of change"),
        })
        .collect();
    let last = words.pop().unwrap_or("changes");
    if words.is_empty() {
        last.to_owned()
    } else {
        format!("{} or {last}", words.join(", "))
    }
}

// === impl ContextType ===

impl ContextType {
    /// The name of the runtime's type, without generic arguments.
    #[must_use]
    pub const fn runtime_type(&self) -> &'static str {
        match self {
            Self::Change(_) => "ChangeContext",
            Self::Field(..) => "FieldContext",
            Self::Event(_) => "EventContext",
            Self::Validation(_) => "ValidationContext",
            Self::Mutation(_) => "MutationContext",
            Self::Daemon(_) => "DaemonContext",
            Self::Timer(_) => "TimerContext",
            Self::Index(..) => "IndexContext",
            Self::Startup => "StartupContext",
            Self::Cleanup => "CleanupContext",
            Self::Login => "LoginContext",
            Self::Probe => "ProbeContext",
        }
    }

    /// The result type of the method, without generic arguments.
    #[must_use]
    pub const fn result(&self) -> &'static str {
        match self {
            Self::Change(_)
            | Self::Field(..)
            | Self::Event(_)
            | Self::Daemon(_)
            | Self::Timer(_)
            | Self::Startup
            | Self::Cleanup
            | Self::Probe => "HandlerResult",
            Self::Login => "LoginResult",
            Self::Validation(_) | Self::Mutation(_) => "AdmissionResult",
            Self::Index(..) => "IndexResult",
        }
    }

    /// The index that the method fills.
    #[must_use]
    pub fn index(&self) -> Option<&str> {
        match self {
            Self::Index(_, index) => Some(index),
            _ => None,
        }
    }

    /// The result type of the method.
    #[must_use]
    pub fn full_result(&self) -> String {
        match self.index() {
            Some(index) => format!("{}<{index}>", self.result()),
            None => self.result().to_owned(),
        }
    }
}

impl fmt::Display for ContextType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(object)
            | Self::Event(object)
            | Self::Validation(object)
            | Self::Mutation(object)
            | Self::Daemon(object)
            | Self::Timer(object)
            | Self::Index(object, _) => {
                write!(f, "{}<{object}>", self.runtime_type())
            }
            Self::Field(object, field) => {
                write!(f, "{}<{object}, {}>", self.runtime_type(), field.text)
            }
            Self::Startup | Self::Cleanup | Self::Login | Self::Probe => {
                f.write_str(self.runtime_type())
            }
        }
    }
}

// === impl PredicateArgument ===

impl fmt::Display for PredicateArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => write!(f, "&{object}"),
            Self::Text => f.write_str("Option<&str>"),
            Self::Field(field) => write!(f, "Option<&{}>", field.text),
        }
    }
}
