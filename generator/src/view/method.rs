//! The methods of a kind's trait: names, arguments, and a sentence that says when each is called.

use crate::load::manifest::Trigger;
use crate::model::handler::{Cause, ChangeKinds, Expected, FieldType, Handler, Subject};
use crate::model::operator::HandledKind;
use crate::view::layout::{article, wrap};

/// The text of a doc comment inside of a trait or an `impl`, which itself takes eight columns.
const DOC_WIDTH: usize = 92;

/// A method that the user's operator has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// When it is called.
    pub doc: Vec<String>,
    /// What it takes.
    pub shape: MethodShape,
}

/// What a method takes and returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodShape {
    /// `change(&self, cx: &mut Context) -> HandlerResult`, asynchronous.
    Handler {
        /// The context.
        context: Context,
    },
    /// `accepts(&self, argument: Type) -> bool`.
    Predicate {
        /// The name of the argument.
        argument: &'static str,
        /// Its type.
        argument_type: PredicateArgument,
    },
}

/// What a handler is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// `Change<Kind>`.
    Change(String),
    /// `FieldChange<Kind, Type>`.
    Field(String, FieldType),
    /// `Seen<Kind>`.
    Seen(String),
}

/// What a predicate is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PredicateArgument {
    /// `&Kind`.
    Object(String),
    /// `Option<&str>`.
    Text,
    /// `Option<&Type>`.
    Field(FieldType),
}

/// Every method of a kind, each once, predicates after the handlers that use them.
#[must_use]
pub fn methods(kind: &HandledKind) -> Vec<Method> {
    let mut methods: Vec<Method> = Vec::new();
    let handlers = kind
        .handlers
        .iter()
        .map(|handler| handler_method(kind, handler));
    let predicates = kind
        .handlers
        .iter()
        .flat_map(|handler| predicate_methods(kind, handler));
    for method in handlers.chain(predicates) {
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
pub fn context(kind: &HandledKind, handler: &Handler) -> Context {
    let object = kind.type_name.clone();
    match &handler.cause {
        Cause::Change(_) => Context::Change(object),
        Cause::Field { field, .. } => Context::Field(object, field.rust_type.clone()),
        Cause::Event { .. } => Context::Seen(object),
    }
}

fn handler_method(kind: &HandledKind, handler: &Handler) -> Method {
    Method {
        name: handler.method.clone(),
        doc: wrap(&sentence(kind, handler), DOC_WIDTH),
        shape: MethodShape::Handler {
            context: context(kind, handler),
        },
    }
}

fn predicate_methods(kind: &HandledKind, handler: &Handler) -> Vec<Method> {
    let field = handler.field();
    let mut methods = Vec::new();
    for filter in &handler.filters {
        let Expected::Predicate(name) = &filter.expected else {
            continue;
        };
        let object = &kind.type_name;
        let typed = || {
            field.map_or(PredicateArgument::Text, |field| {
                PredicateArgument::Field(field.rust_type.clone())
            })
        };
        let (argument, argument_type, subject) = match &filter.subject {
            Subject::Object => (
                "object",
                PredicateArgument::Object(object.clone()),
                format!("{} {object}", article(object)),
            ),
            Subject::Label(key) => (
                "value",
                PredicateArgument::Text,
                format!("the label `{key}`"),
            ),
            Subject::Annotation(key) => (
                "value",
                PredicateArgument::Text,
                format!("the annotation `{key}`"),
            ),
            Subject::Value => ("value", typed(), field_words("", field)),
            Subject::Old => ("value", typed(), field_words("the old ", field)),
            Subject::New => ("value", typed(), field_words("the new ", field)),
        };
        methods.push(Method {
            name: name.clone(),
            doc: wrap(
                &format!("Whether {subject} is one for `{}`.", handler.method),
                DOC_WIDTH,
            ),
            shape: MethodShape::Predicate {
                argument,
                argument_type,
            },
        });
    }
    methods
}

fn field_words(prefix: &str, field: Option<&crate::model::handler::FieldPath>) -> String {
    field.map_or_else(
        || format!("{prefix}value"),
        |field| format!("{prefix}`{field}`"),
    )
}

fn sentence(kind: &HandledKind, handler: &Handler) -> String {
    let object = format!("{} {}", article(&kind.type_name), kind.type_name);
    match &handler.cause {
        Cause::Change(kinds) => format!("Called when {object} {}.", occasions(kinds)),
        Cause::Field { field, within } if within.triggers.is_empty() => {
            format!("Called when `{field}` of {object} changes.")
        }
        Cause::Field { field, within } if within.triggers.iter().eq([&Trigger::Update]) => {
            format!("Called when `{field}` of {object} is changed by an update.")
        }
        Cause::Field { field, within } => {
            format!(
                "Called when {object} {}, with `{field}`.",
                occasions(within)
            )
        }
        Cause::Event { field: None } => format!("Called for everything that is seen of {object}."),
        Cause::Event { field: Some(field) } => {
            format!("Called for everything that is seen of {object} with `{field}`.")
        }
    }
}

fn occasions(kinds: &ChangeKinds) -> String {
    let mut words: Vec<_> = kinds
        .triggers
        .iter()
        .map(|trigger| match trigger {
            Trigger::Create => "is created",
            Trigger::Update => "is changed",
            Trigger::Delete => "is being deleted",
            Trigger::Resume => "is there when the operator starts",
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

// === impl Context ===

impl Context {
    /// The generic type that the runtime has for it.
    #[must_use]
    pub const fn runtime_type(&self) -> &'static str {
        match self {
            Self::Change(_) => "Change",
            Self::Field(..) => "FieldChange",
            Self::Seen(_) => "Seen",
        }
    }
}
