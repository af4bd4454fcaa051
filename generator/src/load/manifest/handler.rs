//! Reads `handlers` of a kind: the handlers of its objects.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::duration::ManifestDuration;
use super::filter::{Conditions, MetadataFilters, PredicateName, ValueFilter};
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::{OneOrMany, Spanned};
use crate::diagnostic::{Code, Span};
use crate::load::yaml::{Node, Value};

/// A function that is called for objects of the kind: with `on` and `fn` for changes and events,
/// as a `timer` at intervals, as a `daemon` as long as the object exists.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "snake_case")]
#[schemars(extend("oneOf" = [
    {
        "required": ["on", "fn"],
        "properties": {"on": {"not": {"type": "null"}}, "fn": {"type": "string"}, "timer": {"type": "null"}, "daemon": {"type": "null"}},
    },
    {
        "required": ["timer"],
        "properties": {"timer": {"type": "string"}, "on": {"type": "null"}, "fn": {"type": "null"}, "daemon": {"type": "null"}},
    },
    {
        "required": ["daemon"],
        "properties": {"daemon": {"type": "string"}, "on": {"type": "null"}, "fn": {"type": "null"}, "timer": {"type": "null"}},
    },
]))]
pub struct HandlerSection {
    /// The place of the entry.
    #[schemars(skip)]
    pub span: Span,
    /// When the function is called; timers and daemons have none.
    pub on: Option<OneOrMany<Trigger>>,
    /// The name of the function; `timer` and `daemon` name theirs themselves.
    #[schemars(rename = "fn", with = "Option<String>")]
    pub function: Spanned<String>,
    /// The name of a function that is called at intervals.
    pub timer: Option<Spanned<String>>,
    /// The name of a function that runs as long as the object exists.
    pub daemon: Option<Spanned<String>>,
    /// The id of the progress on the object; the name of the function if left out.
    pub id: Option<Spanned<String>>,
    /// The kind of the children that `on: child` is about, as in `children`.
    pub kind: Option<Spanned<String>>,
    /// Whether `on: reconcile` is also called when only the status of the object has changed.
    pub status: Option<Spanned<bool>>,
    /// The field, or the fields, that the handler watches, such as `spec.size`.
    pub field: Option<OneOrMany<String>>,
    /// Only objects whose field has this value: `present`, `absent`, `{predicate: name}`, the value itself, or `{any: [a, b]}`, `all`, `none`, `not` of these.
    pub value: Option<Conditions<ValueFilter>>,
    /// Only changes from this value of the field.
    pub old: Option<Conditions<ValueFilter>>,
    /// Only changes to this value of the field.
    pub new: Option<Conditions<ValueFilter>>,
    /// Only objects with these labels: `present`, `absent`, `{predicate: name}`, the value itself, or `{any: [a, b]}`, `all`, `none`, `not` of these.
    pub labels: Option<MetadataFilters>,
    /// Only objects with these annotations, as for labels.
    pub annotations: Option<MetadataFilters>,
    /// The name of a function that decides whether the handler is called, or `{any: [one, two]}`.
    pub when: Option<Conditions<PredicateName>>,
    /// Any value for the function; it is the same in every call.
    pub param: Option<Spanned<serde_json::Value>>,
    /// The Rust type of `param`, such as `crate::handlers::Limits`; if left out, the type of the value itself: a text, an integer, a number, a boolean, or JSON.
    pub param_type: Option<Spanned<String>>,
    /// The Rust type of the result, such as `u32` or `crate::handlers::Usage`; if left out, the type that the schema of the status has under the id of the handler.
    pub result: Option<Spanned<String>>,
    /// The meaning of an error that is neither temporary nor permanent by itself.
    pub errors: Option<Spanned<ErrorMode>>,
    /// The time limit for all attempts, from the first one; no limit if left out.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// The number of attempts; no limit if left out. An event handler is called once, unless it has this or `errors: temporary`.
    #[schemars(range(max = 4_294_967_295u32))]
    pub retries: Option<Spanned<u32>>,
    /// The pause before the next attempt; 60 seconds if left out, or `settings.execution.default_backoff`.
    pub backoff: Option<Spanned<ManifestDuration>>,
    /// Whether deletion does not wait for this delete handler.
    pub optional: Option<Spanned<bool>>,
    /// Whether this resume handler is also called for objects that are being deleted.
    pub deleted: Option<Spanned<bool>>,
    /// The pause of a timer between two calls; the time after which `on: reconcile` is called again.
    pub interval: Option<Spanned<ManifestDuration>>,
    /// Whether a timer is called on a grid of its interval from the first call; a call that takes longer skips points of the grid.
    pub sharp: Option<Spanned<bool>>,
    /// How long an object must be unchanged before its timer is called.
    pub idle: Option<Spanned<ManifestDuration>>,
    /// The delay of a timer or daemon before its first call: a duration, or `{fn: name}` of a function that returns one.
    pub initial_delay: Option<Spanned<InitialDelay>>,
    /// How long a daemon may take to stop by itself after the stop signal, before it is cancelled; no time if left out. It needs `cancellation_timeout`.
    pub cancellation_backoff: Option<Spanned<ManifestDuration>>,
    /// How long a daemon may take to end once cancelled, before the operator abandons it; without it, a daemon is not cancelled, and the operator waits without a limit.
    pub cancellation_timeout: Option<Spanned<ManifestDuration>>,
    /// How often the log reports that the operator still waits for a daemon.
    pub cancellation_polling: Option<Spanned<ManifestDuration>>,
}

/// The trigger of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Trigger {
    /// An object was created.
    Create,
    /// An object was changed.
    Update,
    /// An object is being deleted.
    Delete,
    /// The operator started and found the object.
    Resume,
    /// A field was added, changed or removed.
    Field,
    /// A watch event for the object arrived.
    Event,
    /// The object, or something that it owns or uses, may differ from what it should be.
    Reconcile,
    /// A child of the object was changed, appeared or is gone.
    Child,
}

/// The meaning of an error that is neither temporary nor permanent by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum ErrorMode {
    /// The handler counts as succeeded.
    Ignored,
    /// The handler is retried.
    Temporary,
    /// The handler has failed for good.
    Permanent,
}

/// The delay of a timer or daemon before its first call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialDelay {
    /// A fixed time.
    Fixed(ManifestDuration),
    /// The result of a function of this name.
    Computed(Spanned<String>),
}

/// The trigger of a handler, and its function.
struct Invocation {
    on: Option<OneOrMany<Trigger>>,
    timer: Option<Spanned<String>>,
    daemon: Option<Spanned<String>>,
    function: Spanned<String>,
}

// === impl HandlerSection ===

impl HandlerSection {
    /// The place where the handler names a predicate or another callback.
    #[must_use]
    pub fn predicate_span(&self, name: &str) -> Option<Span> {
        let listed = [&self.labels, &self.annotations].into_iter().flatten();
        let filters = listed
            .flat_map(|filters| &filters.list)
            .map(|(_, filter)| filter);
        let values = [&self.value, &self.old, &self.new].into_iter().flatten();
        let predicates = filters
            .chain(values)
            .flat_map(|filter| filter.combined.conditions())
            .filter_map(|filter| match &filter.value {
                ValueFilter::Predicate(name) => Some((&name.value, name.span)),
                _ => None,
            });
        let whens = self.when.iter();
        let whens = whens
            .flat_map(|when| when.combined.conditions())
            .map(|name| (&name.value.0, name.span));
        let delay = self.initial_delay.iter().filter_map(|it| match &it.value {
            InitialDelay::Computed(name) => Some((&name.value, name.span)),
            InitialDelay::Fixed(_) => None,
        });
        let plain = name.strip_prefix("r#").unwrap_or(name);
        whens
            .chain(delay)
            .chain(predicates)
            .find(|(name, _)| *name == plain)
            .map(|(_, span)| span)
    }
}

// === impl ErrorMode ===

impl ErrorMode {
    /// All modes with their words in the manifest.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("ignored", Self::Ignored),
        ("temporary", Self::Temporary),
        ("permanent", Self::Permanent),
    ];
}

// === impl Trigger ===

impl Trigger {
    /// All triggers with their words in the manifest.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("create", Self::Create),
        ("update", Self::Update),
        ("delete", Self::Delete),
        ("resume", Self::Resume),
        ("field", Self::Field),
        ("event", Self::Event),
        ("reconcile", Self::Reconcile),
        ("child", Self::Child),
    ];
}

// === impl InitialDelay ===

impl JsonSchema for InitialDelay {
    fn schema_name() -> Cow<'static, str> {
        "InitialDelay".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fixed = generator.subschema_for::<ManifestDuration>();
        json_schema!({"anyOf": [
            fixed,
            {"type": "object", "additionalProperties": false, "required": ["fn"], "properties": {"fn": {"type": "string"}}},
        ]})
    }
}

impl ManifestReader<'_> {
    pub(super) fn handler(&mut self, node: &Node) -> Option<HandlerSection> {
        let mut fields = self.fields(node, "a handler")?;
        let span = fields.span();
        let invocation = self.invocation(&mut fields);
        let id = self.optional_string(&mut fields, "id");
        let kind = self.optional_string(&mut fields, "kind");
        let status = self.boolean(&mut fields, "status");
        let field = fields
            .optional("field")
            .and_then(|node| self.one_or_many(node, |this, node| this.string(node, "`field`")));
        let value = self.value_filter(&mut fields, "value");
        let old = self.value_filter(&mut fields, "old");
        let new = self.value_filter(&mut fields, "new");
        let labels = self.filters(&mut fields, "labels");
        let annotations = self.filters(&mut fields, "annotations");
        let when = self.when(&mut fields);
        let param = fields.optional("param").map(|node| Spanned {
            value: node.to_json(),
            span: node.span,
        });
        let param_type = self.optional_string(&mut fields, "param_type");
        let result = self.optional_string(&mut fields, "result");
        let errors = fields
            .optional("errors")
            .and_then(|node| self.word(node, "`errors`", ErrorMode::NAMES));
        let timeout = self.duration(&mut fields, "timeout");
        let retries = self.count(&mut fields, "retries");
        let backoff = self.duration(&mut fields, "backoff");
        let optional = self.boolean(&mut fields, "optional");
        let deleted = self.boolean(&mut fields, "deleted");
        let interval = self.duration(&mut fields, "interval");
        let sharp = self.boolean(&mut fields, "sharp");
        let idle = self.duration(&mut fields, "idle");
        let initial_delay = self.initial_delay(&mut fields);
        let cancellation_backoff = self.duration(&mut fields, "cancellation_backoff");
        let cancellation_timeout = self.duration(&mut fields, "cancellation_timeout");
        let cancellation_polling = self.duration(&mut fields, "cancellation_polling");
        // An invalid `interval` or `idle` was reported; the timer must not be reported for having none.
        let has_valid_interval = (interval.is_some() || fields.optional("interval").is_none())
            && (idle.is_some() || fields.optional("idle").is_none());
        fields.finish(self);
        let invocation = invocation.filter(|_| has_valid_interval)?;
        Some(HandlerSection {
            span,
            on: invocation.on,
            function: invocation.function,
            timer: invocation.timer,
            daemon: invocation.daemon,
            id,
            kind,
            status,
            field,
            value,
            old,
            new,
            labels,
            annotations,
            when,
            param,
            param_type,
            result,
            errors,
            timeout,
            retries,
            backoff,
            optional,
            deleted,
            interval,
            sharp,
            idle,
            initial_delay,
            cancellation_backoff,
            cancellation_timeout,
            cancellation_polling,
        })
    }

    /// Reads the trigger and the function: `on` and `fn`, or `timer`, or `daemon`.
    fn invocation(&mut self, fields: &mut MappingFields<'_>) -> Option<Invocation> {
        let timer = self.optional_string(fields, "timer");
        let daemon = self.optional_string(fields, "daemon");
        let (on, function) = (fields.optional("on"), fields.optional("fn"));
        let one_too_many = match (&timer, &daemon) {
            (Some(_), Some(daemon)) => Some(daemon.span),
            (Some(_), None) | (None, Some(_)) => on.map(|node| node.span),
            (None, None) => None,
        };
        if let Some(span) = one_too_many {
            let message = "a handler has one of `on`, `timer` and `daemon`";
            self.error(Code::ManifestValue, span, message, "one is too many");
            return None;
        }
        let Some(named) = timer.clone().or(daemon.clone()) else {
            let on = fields
                .required_unless("on", &["timer", "daemon"])
                .and_then(|node| {
                    self.one_or_many(node, |this, node| this.word(node, "`on`", Trigger::NAMES))
                });
            let function = fields
                .required_unless("fn", &["timer", "daemon"])
                .and_then(|node| self.string(node, "`fn`"));
            return Some(Invocation {
                on: Some(on?),
                timer,
                daemon,
                function: function?,
            });
        };
        if let Some(function) = function {
            let message = "`timer` and `daemon` name the function themselves";
            self.error(Code::ManifestValue, function.span, message, "remove it");
            return None;
        }
        Some(Invocation {
            on: None,
            timer,
            daemon,
            function: named,
        })
    }

    /// Reads a duration, or the name of a function that returns one.
    fn initial_delay(&mut self, fields: &mut MappingFields<'_>) -> Option<Spanned<InitialDelay>> {
        const KEY: &str = "initial_delay";
        let node = fields.optional(KEY)?;
        if !matches!(node.value, Value::Map(_)) {
            return self.duration(fields, KEY).map(|fixed| Spanned {
                value: InitialDelay::Fixed(fixed.value),
                span: fixed.span,
            });
        }
        let mut inner = self.fields(node, "a computed delay")?;
        let function = inner
            .required("fn")
            .and_then(|node| self.string(node, "`fn`"));
        inner.finish(self);
        Some(Spanned {
            value: InitialDelay::Computed(function?),
            span: node.span,
        })
    }
}
