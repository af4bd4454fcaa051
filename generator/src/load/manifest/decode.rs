//! From YAML nodes to the manifest's types, reporting everything that does not fit.

use super::fields::{Fields, Reader};
use super::peers::whole;
use super::{
    API_VERSION, AdmissionSection, ApiVersion, Configuration, ErrorMode, FILE_NAME, Filters,
    HandlerSection, IndexSection, InitialDelay, Manifest, ManifestDuration, OneOrMany, Operation,
    OperatorSection, ResourceSection, Spanned, Tracking, Trigger, ValueFilter, WebhookSection,
    duration,
};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::load::yaml::{self, Dialect, Node, Value};

const TRACKINGS: &[(&str, Tracking)] = &[
    ("matching", Tracking::Matching),
    ("always", Tracking::Always),
];

const CONFIGURATIONS: &[(&str, Configuration)] = &[
    ("managed", Configuration::Managed),
    ("cert-manager", Configuration::CertManager),
];

/// What a handler is called for, and its function.
struct Occasion {
    on: Option<OneOrMany<Trigger>>,
    timer: Option<Spanned<String>>,
    daemon: Option<Spanned<String>>,
    function: Spanned<String>,
}

pub(super) fn manifest(
    sources: &Sources,
    source: SourceId,
    diagnostics: &mut Diagnostics,
) -> Option<Manifest> {
    let documents = yaml::parse(sources, source, Dialect::Core, diagnostics);
    let had_errors = diagnostics.has_errors();
    let mut reader = Reader {
        source,
        diagnostics,
    };
    let mut documents = documents.iter();
    let Some(root) = documents.next() else {
        if !had_errors {
            let help = format!("it starts with `apiVersion: {API_VERSION}`");
            let message = format!("{FILE_NAME} is empty");
            reader.push(
                Diagnostic::error(Code::ManifestMissing, message)
                    .at(source, Span::default(), "")
                    .help(help),
            );
        }
        return None;
    };
    if let Some(second) = documents.next() {
        let message = format!("{FILE_NAME} holds one document");
        reader.error(
            Code::ManifestValue,
            first_line(second),
            message,
            "a second document",
        );
    }
    reader.manifest(root)
}

/// The place of something large, cut down to where it begins.
fn first_line(node: &Node) -> Span {
    Span::new(node.span.start, node.span.end.min(node.span.start + 1))
}

impl Reader<'_> {
    fn manifest(&mut self, root: &Node) -> Option<Manifest> {
        let mut fields = self.fields(root, "the manifest")?;
        let versions = [(API_VERSION, ApiVersion::V1)];
        let api_version = fields
            .required(self, "apiVersion")
            .and_then(|node| self.word(node, "`apiVersion`", &versions));
        let operator = fields
            .required(self, "operator")
            .and_then(|node| self.operator(node));
        let resources = match fields.optional("resources") {
            Some(node) => self.list(node, "`resources`", Self::resource),
            None => Some(Vec::new()),
        };
        fields.finish(self);
        Some(Manifest {
            api_version: api_version?,
            operator: operator?,
            resources: resources?,
            source: self.source,
        })
    }

    fn operator(&mut self, node: &Node) -> Option<OperatorSection> {
        let mut fields = self.fields(node, "`operator`")?;
        let name = fields
            .required(self, "name")
            .and_then(|node| self.string(node, "`name`"));
        let namespaces = self.namespaces(&mut fields);
        let peering = self.peering(&mut fields);
        let leader_election = self.leader_election(&mut fields);
        let admission = fields
            .optional("admission")
            .and_then(|node| self.admission(node));
        let settings = self.settings(&mut fields);
        let handlers = self.hooks(&mut fields);
        fields.finish(self);
        Some(OperatorSection {
            name: name?,
            namespaces,
            peering,
            leader_election,
            admission,
            settings,
            handlers,
        })
    }

    fn admission(&mut self, node: &Node) -> Option<AdmissionSection> {
        let mut fields = self.fields(node, "`admission`")?;
        let section = AdmissionSection {
            name: self.optional_string(&mut fields, "name"),
            configuration: fields
                .optional("configuration")
                .and_then(|node| self.word(node, "`configuration`", CONFIGURATIONS)),
        };
        fields.finish(self);
        Some(section)
    }

    fn resource(&mut self, node: &Node) -> Option<ResourceSection> {
        let mut fields = self.fields(node, "a resource")?;
        let is_selected = fields.optional("select").is_some();
        let section = ResourceSection {
            span: fields.place(),
            crd: self.optional_string(&mut fields, "crd"),
            kind: self.optional_string(&mut fields, "kind"),
            version: self.optional_string(&mut fields, "version"),
            builtin: self.optional_string(&mut fields, "builtin"),
            select: self.select(&mut fields),
            alias: self.optional_string(&mut fields, "as"),
            memo: self.optional_string(&mut fields, "memo"),
            track: fields
                .optional("track")
                .and_then(|node| self.word(node, "`track`", TRACKINGS)),
            handlers: match fields.optional("handlers") {
                Some(node) => self
                    .list(node, "`handlers`", Self::handler)
                    .unwrap_or_default(),
                None => Vec::new(),
            },
            indices: match fields.optional("indices") {
                Some(node) => self
                    .list(node, "`indices`", Self::index)
                    .unwrap_or_default(),
                None => Vec::new(),
            },
            admission: match fields.optional("admission") {
                Some(node) => self
                    .list(node, "`admission`", Self::webhook)
                    .unwrap_or_default(),
                None => Vec::new(),
            },
        };
        fields.finish(self);
        // What is wrong with the selection was reported, and there is no other way to go on.
        (!is_selected || section.select.is_some()).then_some(section)
    }

    fn handler(&mut self, node: &Node) -> Option<HandlerSection> {
        let mut fields = self.fields(node, "a handler")?;
        let span = fields.span();
        let occasion = self.occasion(&mut fields);
        let id = self.optional_string(&mut fields, "id");
        let field = fields
            .optional("field")
            .and_then(|node| self.one_or_many(node, |this, node| this.string(node, "`field`")));
        let value = self.value_filter(&mut fields, "value");
        let old = self.value_filter(&mut fields, "old");
        let new = self.value_filter(&mut fields, "new");
        let labels = self.filters(&mut fields, "labels");
        let annotations = self.filters(&mut fields, "annotations");
        let when = self.optional_string(&mut fields, "when");
        let param = fields.optional("param").map(|node| Spanned {
            value: node.to_json(),
            span: node.span,
        });
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
        fields.finish(self);
        let occasion = occasion?;
        Some(HandlerSection {
            span,
            on: occasion.on,
            function: occasion.function,
            timer: occasion.timer,
            daemon: occasion.daemon,
            id,
            field,
            value,
            old,
            new,
            labels,
            annotations,
            when,
            param,
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

    /// Which function is called, and for what: `on` and `fn`, or `timer`, or `daemon`.
    fn occasion(&mut self, fields: &mut Fields<'_>) -> Option<Occasion> {
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
            let on = fields.required(self, "on").and_then(|node| {
                self.one_or_many(node, |this, node| this.word(node, "`on`", Trigger::NAMES))
            });
            let function = fields
                .required(self, "fn")
                .and_then(|node| self.string(node, "`fn`"));
            return Some(Occasion {
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
        Some(Occasion {
            on: None,
            timer,
            daemon,
            function: named,
        })
    }

    /// A duration, or the name of a function that tells one.
    fn initial_delay(&mut self, fields: &mut Fields<'_>) -> Option<Spanned<InitialDelay>> {
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
            .required(self, "fn")
            .and_then(|node| self.string(node, "`fn`"));
        inner.finish(self);
        Some(Spanned {
            value: InitialDelay::Computed(function?),
            span: node.span,
        })
    }

    fn index(&mut self, node: &Node) -> Option<IndexSection> {
        let mut fields = self.fields(node, "an index")?;
        let span = fields.place();
        let index = fields
            .required(self, "index")
            .and_then(|node| self.string(node, "`index`"));
        let keys = self.optional_string(&mut fields, "keys");
        let values = self.optional_string(&mut fields, "values");
        let field = self.optional_string(&mut fields, "field");
        let value = self.value_filter(&mut fields, "value");
        let labels = self.filters(&mut fields, "labels");
        let annotations = self.filters(&mut fields, "annotations");
        let when = self.optional_string(&mut fields, "when");
        let param = fields.optional("param").map(|node| Spanned {
            value: node.to_json(),
            span: node.span,
        });
        let errors = fields
            .optional("errors")
            .and_then(|node| self.word(node, "`errors`", ErrorMode::NAMES));
        let timeout = self.duration(&mut fields, "timeout");
        let retries = self.count(&mut fields, "retries");
        let backoff = self.duration(&mut fields, "backoff");
        fields.finish(self);
        Some(IndexSection {
            span,
            index: index?,
            keys,
            values,
            field,
            value,
            labels,
            annotations,
            when,
            param,
            errors,
            timeout,
            retries,
            backoff,
        })
    }

    fn webhook(&mut self, node: &Node) -> Option<WebhookSection> {
        let mut fields = self.fields(node, "a webhook")?;
        let section = WebhookSection {
            span: fields.place(),
            validate: self.optional_string(&mut fields, "validate"),
            mutate: self.optional_string(&mut fields, "mutate"),
            id: self.optional_string(&mut fields, "id"),
            operations: fields.optional("operations").and_then(|node| {
                self.one_or_many(node, |this, node| {
                    this.word(node, "`operations`", Operation::NAMES)
                })
            }),
            subresource: self.optional_string(&mut fields, "subresource"),
            side_effects: self.boolean(&mut fields, "side_effects"),
            ignore_failures: self.boolean(&mut fields, "ignore_failures"),
            persistent: self.boolean(&mut fields, "persistent"),
            timeout: self.duration(&mut fields, "timeout"),
            field: self.optional_string(&mut fields, "field"),
            value: self.value_filter(&mut fields, "value"),
            old: self.value_filter(&mut fields, "old"),
            new: self.value_filter(&mut fields, "new"),
            labels: self.filters(&mut fields, "labels"),
            annotations: self.filters(&mut fields, "annotations"),
            when: self.optional_string(&mut fields, "when"),
            param: fields.optional("param").map(|node| Spanned {
                value: node.to_json(),
                span: node.span,
            }),
        };
        fields.finish(self);
        Some(section)
    }

    pub(super) fn list<T>(
        &mut self,
        node: &Node,
        what: &str,
        mut item: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(nodes) = node.as_seq() else {
            self.wrong_type(node, what, "a list");
            return None;
        };
        Some(nodes.iter().filter_map(|node| item(self, node)).collect())
    }

    pub(super) fn one_or_many<T>(
        &mut self,
        node: &Node,
        mut item: impl FnMut(&mut Self, &Node) -> Option<Spanned<T>>,
    ) -> Option<OneOrMany<T>> {
        match node.as_seq() {
            None => item(self, node).map(OneOrMany::One),
            Some([]) => {
                self.error(
                    Code::ManifestValue,
                    node.span,
                    "the list is empty",
                    "at least one is needed",
                );
                None
            }
            Some(nodes) => {
                let values: Vec<_> = nodes.iter().filter_map(|node| item(self, node)).collect();
                (values.len() == nodes.len()).then_some(OneOrMany::Many(values))
            }
        }
    }

    pub(super) fn optional_string(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Spanned<String>> {
        fields
            .optional(key)
            .and_then(|node| self.string(node, &format!("`{key}`")))
    }

    pub(super) fn boolean(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Spanned<bool>> {
        let node = fields.optional(key)?;
        let value = node.as_bool();
        if value.is_none() {
            self.wrong_type(node, &format!("`{key}`"), "true or false");
        }
        value.map(|value| Spanned {
            value,
            span: node.span,
        })
    }

    pub(super) fn count(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Spanned<u32>> {
        let node = fields.optional(key)?;
        match whole(node).map(u32::try_from) {
            Some(Ok(value)) => Some(Spanned {
                value,
                span: node.span,
            }),
            Some(Err(_)) => {
                let message = format!("`{key}` must be between 0 and {}", u32::MAX);
                self.error(Code::ManifestValue, node.span, message, "out of range");
                None
            }
            None => {
                self.wrong_type(node, &format!("`{key}`"), "a whole number");
                None
            }
        }
    }

    pub(super) fn duration(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Spanned<ManifestDuration>> {
        let node = fields.optional(key)?;
        self.duration_of(node, key)
    }

    pub(super) fn duration_of(
        &mut self,
        node: &Node,
        key: &str,
    ) -> Option<Spanned<ManifestDuration>> {
        let parsed = match &node.value {
            Value::String(text) => duration::parse(text),
            #[expect(
                clippy::cast_precision_loss,
                reason = "the range check is far below the precision of f64"
            )]
            Value::Int(seconds) => duration::from_seconds(*seconds as f64),
            Value::Float(seconds) => duration::from_seconds(*seconds),
            _ => None,
        };
        if parsed.is_none() {
            self.push(
                Diagnostic::error(Code::ManifestValue, format!("`{key}` is not a duration"))
                    .at(self.source, node.span, "not a duration")
                    .help("write it as `30s`, `5m`, `1h30m`, or as a number of seconds"),
            );
        }
        parsed.map(|value| Spanned {
            value: ManifestDuration(value),
            span: node.span,
        })
    }

    fn value_filter(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Spanned<ValueFilter>> {
        let node = fields.optional(key)?;
        let value = match &node.value {
            Value::String(word) if word == "present" => ValueFilter::Present,
            Value::String(word) if word == "absent" => ValueFilter::Absent,
            Value::Map(_) => self.explicit_filter(node, "a value filter")?,
            Value::Seq(_) => {
                self.push(
                    Diagnostic::error(Code::ManifestType, format!("`{key}` cannot be a list"))
                        .at(self.source, node.span, "a list")
                        .help("to compare with a list, write `{value: [...]}`"),
                );
                return None;
            }
            _ => ValueFilter::Equals(node.to_json()),
        };
        Some(Spanned {
            value,
            span: node.span,
        })
    }

    /// `{value: …}` or `{predicate: name}`.
    fn explicit_filter(&mut self, node: &Node, what: &'static str) -> Option<ValueFilter> {
        let mut fields = self.fields(node, what)?;
        let alone = node.as_map().is_some_and(|entries| entries.len() == 1);
        let value = fields.optional("value");
        let predicate = fields
            .optional("predicate")
            .and_then(|node| self.string(node, "`predicate`"));
        fields.finish(self);
        match (value, predicate) {
            (Some(value), None) if alone => Some(ValueFilter::Equals(value.to_json())),
            (None, Some(predicate)) if alone => Some(ValueFilter::Predicate(predicate)),
            _ => {
                let message = format!("{what} has either `value` or `predicate`");
                self.error(
                    Code::ManifestValue,
                    node.span,
                    message,
                    "one of the two is needed",
                );
                None
            }
        }
    }

    fn filters(&mut self, fields: &mut Fields<'_>, key: &'static str) -> Option<Filters> {
        let node = fields.optional(key)?;
        let Some(entries) = node.as_map() else {
            self.wrong_type(node, &format!("`{key}`"), "a mapping");
            return None;
        };
        let mut list = Vec::new();
        for entry in entries {
            let filter = match &entry.value.value {
                Value::String(word) if word == "present" => Some(ValueFilter::Present),
                Value::String(word) if word == "absent" => Some(ValueFilter::Absent),
                Value::String(text) => Some(ValueFilter::Equals(text.as_str().into())),
                Value::Map(_) => self
                    .explicit_filter(&entry.value, "a filter")
                    .filter(|filter| {
                        let fits =
                            !matches!(filter, ValueFilter::Equals(value) if !value.is_string());
                        if !fits {
                            self.not_text(&entry.value, key);
                        }
                        fits
                    }),
                _ => {
                    self.not_text(&entry.value, key);
                    None
                }
            };
            let name = Spanned {
                value: entry.key.name.clone(),
                span: entry.key.span,
            };
            list.extend(filter.map(|filter| {
                (
                    name,
                    Spanned {
                        value: filter,
                        span: entry.value.span,
                    },
                )
            }));
        }
        Some(Filters { list })
    }

    fn not_text(&mut self, node: &Node, key: &str) {
        let message = format!(
            "the values of `{key}` are strings, and this is {}",
            node.kind()
        );
        self.push(
            Diagnostic::error(Code::ManifestType, message)
                .at(self.source, node.span, "not a string")
                .help("put it in quotes, or write `present` or `absent`"),
        );
    }
}
