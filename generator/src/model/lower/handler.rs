//! Lowers one handler of the manifest to one or more handlers of the model.

use std::collections::BTreeSet;

use kopf_core::handler::filter::Combined;
use kopf_core::object::path::FieldPath;

use super::lowering::{HandlerFamily, Lowering, snake};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::load::manifest::{
    Conditions, HandlerSection, InitialDelay, ManifestDuration, OneOrMany, Spanned, Trigger,
    ValueFilter,
};
use crate::model::handler::{
    ChangeTriggers, DaemonOptions, FilterSubject, FilterTest, Handler, HandlerCause, HandlerFilter,
    Predicate, ReconcileTimes, RetryOptions, StartDelay, TimerOptions, TimerSchedule, TypedField,
};
use crate::model::index::IndexType;
use crate::model::param::{Param, ParamType};
use crate::rust::RustType;

impl Lowering<'_> {
    /// One handler per field that the entry names, or one if it names none.
    pub(super) fn handler(mut self, section: &HandlerSection) -> Vec<Handler> {
        let before = self.diagnostics.count(Severity::Error);
        let key = match (&section.timer, &section.daemon) {
            (Some(_), _) => "`timer`",
            (_, Some(_)) => "`daemon`",
            (None, None) => "`fn`",
        };
        let method = self.identifier(&section.function, key);
        let family = self.family(section);
        let fields = self.fields(section);
        self.check(section, family.as_ref(), &fields);
        let filters = self.filters(section);
        let initial_delay = self.initial_delay(section);
        let result = self.named_type(section.result.as_ref(), "not a type for a result");
        let param = self.param(section);
        let sound = self.diagnostics.count(Severity::Error) == before;
        let (Some(method), Some(family), true) = (method, family, sound) else {
            return Vec::new();
        };
        let id = section
            .id
            .as_ref()
            .map_or_else(|| section.function.value.clone(), |id| id.value.clone());
        let in_status = self.in_status;
        let make = |method: String, field: Option<TypedField>| {
            let mut handler = Handler {
                id: id.clone(),
                method,
                cause: cause(&family, section, field, initial_delay.clone()),
                filters: filters.clone(),
                retry: retry_options(section),
                param: param.clone(),
                result: result.clone(),
            };
            let returns = !matches!(family, HandlerFamily::Reconcile | HandlerFamily::Child(_));
            if returns && handler.result.is_none() {
                handler.result = in_status(&handler.full_id());
            }
            handler
        };
        if fields.is_empty() {
            return vec![make(method, None)];
        }
        let several = fields.len() > 1;
        fields
            .into_iter()
            .map(|field| {
                let method = if several {
                    format!("{}_{}", method.trim_start_matches("r#"), snake(&field.keys))
                } else {
                    method.clone()
                };
                make(method, Some(field))
            })
            .collect()
    }

    fn family(&mut self, section: &HandlerSection) -> Option<HandlerFamily> {
        if section.daemon.is_some() {
            return Some(HandlerFamily::Daemon);
        }
        if section.timer.is_some() {
            return self.schedule(section).map(HandlerFamily::Timer);
        }
        let triggers = section.on.as_ref().map_or(&[][..], OneOrMany::as_slice);
        let kinds: BTreeSet<_> = triggers.iter().map(|trigger| trigger.value).collect();
        if kinds.len() < triggers.len() {
            let last = triggers.last().map_or(section.span, |trigger| trigger.span);
            self.error(
                Code::HandlerTriggers,
                last,
                "`on` names the same occasion twice",
                "remove one",
            );
        }
        for (alone, why) in [
            (
                Trigger::Event,
                "an event handler is called for every watch event and has a context of its own",
            ),
            (
                Trigger::Field,
                "a field handler is called whenever its field changes, whatever the occasion",
            ),
            (
                Trigger::Reconcile,
                "`reconcile` is called on all these occasions and has a context of its own",
            ),
            (
                Trigger::Child,
                "a handler of children has a context of its own",
            ),
        ] {
            let Some(trigger) = triggers.iter().find(|trigger| trigger.value == alone) else {
                continue;
            };
            if kinds.len() > 1 {
                let message = "this occasion cannot be combined with others".to_owned();
                self.push(
                    Diagnostic::error(Code::HandlerTriggers, message)
                        .at(self.source, trigger.span, "stands alone")
                        .help(format!("{why}: declare a second handler")),
                );
                return None;
            }
            return Some(match alone {
                Trigger::Event => HandlerFamily::Event,
                Trigger::Reconcile => HandlerFamily::Reconcile,
                Trigger::Child => HandlerFamily::Child(self.child_cause(section)?),
                _ => HandlerFamily::Field,
            });
        }
        Some(HandlerFamily::Change(kinds))
    }

    /// The schedule of a timer: an interval, idleness, or both.
    fn schedule(&mut self, section: &HandlerSection) -> Option<TimerSchedule> {
        let idle = section.idle.map(|idle| idle.value.0);
        let schedule = match (section.interval, idle) {
            (Some(interval), idle) => TimerSchedule::Every {
                interval: interval.value.0,
                sharp: section.sharp.is_some_and(|sharp| sharp.value),
                idle,
            },
            (None, Some(idle)) => TimerSchedule::Idle(idle),
            (None, None) => {
                self.push(
                    Diagnostic::error(Code::HandlerOption, "a timer needs `interval` or `idle`")
                        .at(self.source, section.function.span, "when is it called?")
                        .help("write `interval: 30s`, or `idle: 10s` for once after each change"),
                );
                return None;
            }
        };
        Some(schedule)
    }

    fn param(&mut self, section: &HandlerSection) -> Option<Param> {
        let named = self.named_type(section.param_type.as_ref(), "not a type for a parameter");
        let Some(written) = &section.param else {
            if let Some(written) = &section.param_type {
                let message = "`param_type` needs `param`: it is the type of its value";
                self.error(
                    Code::HandlerOption,
                    written.span,
                    message,
                    "of which value?",
                );
            }
            return None;
        };
        let value = written.value.clone();
        Some(match named {
            Some(ty) => Param {
                value,
                ty: ParamType::Named(ty),
            },
            None => Param::of_literal(value),
        })
    }

    /// A type that the manifest names.
    fn named_type(
        &mut self,
        written: Option<&Spanned<String>>,
        label: &'static str,
    ) -> Option<RustType> {
        let written = written?;
        match IndexType::of_values(&written.value, self.kind_types) {
            Ok(found) => Some(found.resolved),
            Err(problem) => {
                let help = "a type of your own is written with its path: `crate::handlers::Usage`";
                self.push(
                    Diagnostic::error(Code::HandlerType, problem.to_string())
                        .at(self.source, written.span, label)
                        .help(help),
                );
                None
            }
        }
    }

    fn initial_delay(&mut self, section: &HandlerSection) -> Option<StartDelay> {
        match &section.initial_delay.as_ref()?.value {
            InitialDelay::Fixed(delay) => Some(StartDelay::Fixed(delay.0)),
            InitialDelay::Computed(name) => self
                .predicate(name, "`fn` of `initial_delay`")
                .map(StartDelay::Computed),
        }
    }

    fn fields(&mut self, section: &HandlerSection) -> Vec<TypedField> {
        let Some(fields) = &section.field else {
            return Vec::new();
        };
        let mut paths: Vec<TypedField> = Vec::new();
        for field in fields.as_slice() {
            let path = FieldPath::parse(&field.value).filter(|path| !path.parts().is_empty());
            let Some(path) = path else {
                self.push(
                    Diagnostic::error(
                        Code::UnknownField,
                        format!("`{}` is not a field path", field.value),
                    )
                    .at(self.source, field.span, "not a path")
                    .help("write it like `spec.size` or `metadata.labels[\"example.com/tier\"]`"),
                );
                continue;
            };
            let keys = path.parts().to_vec();
            if paths.iter().any(|known| known.keys == keys) {
                self.error(
                    Code::DuplicateHandler,
                    field.span,
                    format!("`{}` is named twice", field.value),
                    "remove one",
                );
                continue;
            }
            if let Some(rust_type) = (self.resolve)(&keys, field.span, self.diagnostics) {
                paths.push(TypedField { keys, rust_type });
            }
        }
        paths
    }

    fn filters(&mut self, section: &HandlerSection) -> Vec<HandlerFilter> {
        let mut filters = Vec::new();
        for (key, filter) in section.labels.iter().flat_map(|filters| &filters.list) {
            let expected = self.filter_tests(filter);
            filters.push((FilterSubject::Label(key.value.clone()), expected));
        }
        for (key, filter) in section.annotations.iter().flat_map(|filters| &filters.list) {
            let expected = self.filter_tests(filter);
            filters.push((FilterSubject::Annotation(key.value.clone()), expected));
        }
        for (subject, filter) in [
            (FilterSubject::Value, &section.value),
            (FilterSubject::Old, &section.old),
            (FilterSubject::New, &section.new),
        ] {
            if let Some(filter) = filter {
                filters.push((subject, self.filter_tests(filter)));
            }
        }
        if let Some(when) = &section.when {
            let expected = when.combined.try_map(&mut |name| {
                let name = Spanned {
                    value: name.value.0.clone(),
                    span: name.span,
                };
                let method = self.predicate(&name, "`when`")?;
                Some(FilterTest::Predicate(Predicate::new(method)))
            });
            filters.push((FilterSubject::Object, expected));
        }
        filters
            .into_iter()
            .filter_map(|(subject, expected)| {
                expected.map(|expected| HandlerFilter { subject, expected })
            })
            .collect()
    }

    fn filter_tests(&mut self, filter: &Conditions<ValueFilter>) -> Option<Combined<FilterTest>> {
        filter.combined.try_map(&mut |filter| match &filter.value {
            ValueFilter::Present => Some(FilterTest::Present),
            ValueFilter::Absent => Some(FilterTest::Absent),
            ValueFilter::Equals(value) => Some(FilterTest::Equals(value.clone())),
            ValueFilter::Predicate(name) => {
                let method = self.predicate(name, "`predicate`")?;
                Some(FilterTest::Predicate(Predicate::new(method)))
            }
        })
    }
}

fn cause(
    family: &HandlerFamily,
    section: &HandlerSection,
    field: Option<TypedField>,
    initial_delay: Option<StartDelay>,
) -> HandlerCause {
    let time = |time: Option<Spanned<ManifestDuration>>| time.map(|time| time.value.0);
    match (family, field) {
        (HandlerFamily::Daemon, field) => HandlerCause::Daemon(DaemonOptions {
            field,
            initial_delay,
            cancellation_backoff: time(section.cancellation_backoff),
            cancellation_timeout: time(section.cancellation_timeout),
            cancellation_polling: time(section.cancellation_polling),
        }),
        (HandlerFamily::Timer(schedule), field) => HandlerCause::Timer(TimerOptions {
            field,
            initial_delay,
            schedule: *schedule,
        }),
        (HandlerFamily::Event, field) => HandlerCause::Event { field },
        (HandlerFamily::Reconcile, _) => HandlerCause::Reconcile(ReconcileTimes {
            interval: time(section.interval),
            status: section.status.is_some_and(|status| status.value),
        }),
        (HandlerFamily::Child(child), _) => HandlerCause::Child(child.clone()),
        (HandlerFamily::Field, Some(field)) => HandlerCause::Field {
            field,
            within: ChangeTriggers::default(),
        },
        (HandlerFamily::Change(triggers), Some(field)) => HandlerCause::Field {
            field,
            within: change_triggers(section, triggers),
        },
        (HandlerFamily::Change(triggers), None) => {
            HandlerCause::Change(change_triggers(section, triggers))
        }
        (HandlerFamily::Field, None) => unreachable!("a field handler without a field was refused"),
    }
}

fn change_triggers(section: &HandlerSection, triggers: &BTreeSet<Trigger>) -> ChangeTriggers {
    ChangeTriggers {
        triggers: triggers.clone(),
        optional: section.optional.is_some_and(|optional| optional.value),
        deleted: section.deleted.is_some_and(|deleted| deleted.value),
    }
}

fn retry_options(section: &HandlerSection) -> RetryOptions {
    RetryOptions {
        errors: section.errors.map(|errors| errors.value),
        timeout: section.timeout.map(|timeout| timeout.value.0),
        retries: section.retries.map(|retries| retries.value),
        backoff: section.backoff.map(|backoff| backoff.value.0),
    }
}
