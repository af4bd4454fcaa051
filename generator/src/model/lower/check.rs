//! Options of a handler that contradict each other or can never be met.

use std::collections::BTreeSet;

use super::handler::{Family, Lowering};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::manifest::{
    HandlerSection, ManifestDuration, OneOrMany, Spanned, Trigger, ValueFilter,
};
use crate::model::handler::FieldPath;

impl Lowering<'_> {
    /// Everything that one entry can say wrongly about itself.
    pub(super) fn check(
        &mut self,
        section: &HandlerSection,
        family: Option<&Family>,
        fields: &[FieldPath],
    ) {
        self.check_options(section, family);
        self.check_background(section);
        self.check_values(section, fields);
        self.check_id(section);
        self.check_keys(section);
    }

    fn check_options(&mut self, section: &HandlerSection, family: Option<&Family>) {
        if matches!(family, Some(Family::Field)) && section.field.is_none() {
            self.error(
                Code::HandlerOption,
                section.function.span,
                "a field handler needs `field`",
                "which field?",
            );
        }
        for (key, span) in [
            ("value", section.value.as_ref().map(|it| it.span)),
            ("old", section.old.as_ref().map(|it| it.span)),
            ("new", section.new.as_ref().map(|it| it.span)),
        ] {
            let Some(span) = span else { continue };
            if section.field.is_none() {
                let message = format!("`{key}` needs `field`: it is about the value of a field");
                self.error(
                    Code::HandlerOption,
                    span,
                    message,
                    "the value of which field?",
                );
            } else if key != "value" && section.value.is_some() {
                let message = format!("`value` and `{key}` exclude each other");
                self.push(
                    Diagnostic::error(Code::HandlerOption, message)
                        .at(self.source, span, "")
                        .help("`value` matches before or after the change; `old` and `new` tell them apart"),
                );
            } else if key != "value"
                && matches!(
                    family,
                    Some(Family::Event | Family::Daemon | Family::Timer(_))
                )
            {
                let message = format!("{} has no `{key}`: it does not compare", noun(section));
                self.error(Code::HandlerOption, span, message, "only for changes");
            }
        }
        let triggers = match family {
            Some(Family::Change(triggers)) => triggers.clone(),
            _ => BTreeSet::new(),
        };
        if let Some(optional) = section
            .optional
            .filter(|_| !triggers.contains(&Trigger::Delete))
        {
            let message = "`optional` is for delete handlers";
            self.error(
                Code::HandlerOption,
                optional.span,
                message,
                "this handler is not called at deletion",
            );
        }
        if let Some(deleted) = section
            .deleted
            .filter(|_| !triggers.contains(&Trigger::Resume))
        {
            let message = "`deleted` is for resume handlers";
            self.error(
                Code::HandlerOption,
                deleted.span,
                message,
                "this handler is not called at a restart",
            );
        }
        if let Some(retries) = section.retries.filter(|retries| retries.value == 0) {
            let message = "with `retries: 0` the handler would never be called";
            self.error(
                Code::HandlerOption,
                retries.span,
                message,
                "the number of attempts, the first included",
            );
        }
    }

    /// Options of timers and daemons, on whatever has them.
    fn check_background(&mut self, section: &HandlerSection) {
        let (timer, daemon) = (section.timer.is_some(), section.daemon.is_some());
        let span = |time: &Option<Spanned<ManifestDuration>>| time.map(|time| time.span);
        let sharp = section.sharp.map(|sharp| sharp.span);
        let delay = section.initial_delay.as_ref().map(|delay| delay.span);
        for (key, span, fits, owners) in [
            ("interval", span(&section.interval), timer, "timers"),
            ("sharp", sharp, timer, "timers"),
            ("idle", span(&section.idle), timer, "timers"),
            (
                "initial_delay",
                delay,
                timer || daemon,
                "timers and daemons",
            ),
            (
                "cancellation_backoff",
                span(&section.cancellation_backoff),
                daemon,
                "daemons",
            ),
            (
                "cancellation_timeout",
                span(&section.cancellation_timeout),
                daemon,
                "daemons",
            ),
            (
                "cancellation_polling",
                span(&section.cancellation_polling),
                daemon,
                "daemons",
            ),
        ] {
            if let Some(span) = span.filter(|_| !fits) {
                let message = format!("`{key}` is for {owners}");
                let label = format!("{} has none", noun(section));
                self.error(Code::HandlerOption, span, message, label);
            }
        }
        for (key, time) in [("interval", section.interval), ("idle", section.idle)] {
            if let Some(time) = time.filter(|time| timer && time.value.0.is_zero()) {
                let message = format!("`{key}` must not be zero: the timer would never rest");
                self.error(Code::HandlerOption, time.span, message, "no time at all");
            }
        }
        if let Some(sharp) = section.sharp
            && timer
            && section.interval.is_none()
        {
            let message = "`sharp` needs `interval`: it says how the interval is counted";
            self.error(Code::HandlerOption, sharp.span, message, "which interval?");
        }
    }

    /// A value of another type than the field would never be met.
    fn check_values(&mut self, section: &HandlerSection, fields: &[FieldPath]) {
        for filter in [&section.value, &section.old, &section.new]
            .into_iter()
            .flatten()
        {
            let ValueFilter::Equals(value) = &filter.value else {
                continue;
            };
            for field in fields {
                let ty = field.rust_type.text.as_str();
                if !could_be(value, ty) {
                    self.push(
                        Diagnostic::error(
                            Code::FilterValue,
                            format!("`{field}` can never be `{value}`"),
                        )
                        .at(
                            self.source,
                            filter.span,
                            format!("the field holds {}", in_words(ty)),
                        )
                        .maybe_help(
                            value
                                .is_number()
                                .then(|| format!("write it as a text: \"{value}\"")),
                        ),
                    );
                }
            }
        }
    }

    /// Ids become parts of annotation names.
    fn check_id(&mut self, section: &HandlerSection) {
        let Some(id) = &section.id else { return };
        let allowed =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '<' | '>');
        if id.value.is_empty() || !id.value.chars().all(allowed) {
            self.push(
                Diagnostic::error(Code::HandlerName, format!("`{}` cannot be an id", id.value))
                    .at(
                        self.source,
                        id.span,
                        "not fit for the name of an annotation",
                    )
                    .help("use letters, digits, `-`, `_`, `.` and `/`"),
            );
        }
    }

    /// A label or annotation of a name that the API server refuses is on no object.
    fn check_keys(&mut self, section: &HandlerSection) {
        for (what, filters) in [
            ("label", &section.labels),
            ("annotation", &section.annotations),
        ] {
            for (key, _) in filters.iter().flat_map(|filters| &filters.list) {
                if !is_qualified_name(&key.value) {
                    let message = format!("no object has {} `{}`", article_of(what), key.value);
                    self.push(
                        Diagnostic::error(Code::FilterValue, message)
                            .at(
                                self.source,
                                key.span,
                                format!("not the name of {}", article_of(what)),
                            )
                            .help("names look like `tier` or `example.com/tier`"),
                    );
                }
            }
        }
    }
}

/// What an entry is, for messages about it.
fn noun(section: &HandlerSection) -> &'static str {
    let is_event = |on: &OneOrMany<Trigger>| {
        let mut triggers = on.as_slice().iter();
        triggers.any(|trigger| trigger.value == Trigger::Event)
    };
    match (&section.timer, &section.daemon, &section.on) {
        (Some(_), _, _) => "a timer",
        (_, Some(_), _) => "a daemon",
        (_, _, Some(on)) if is_event(on) => "an event handler",
        _ => "a change handler",
    }
}

fn article_of(what: &str) -> String {
    if what.starts_with('a') {
        format!("an {what}")
    } else {
        format!("a {what}")
    }
}

/// Whether a text can be the name of a label or an annotation.
fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let ends_well = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let of = |text: &str, extra: &[char]| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || extra.contains(&c))
    };
    name.len() <= 63
        && ends_well(name)
        && of(name, &['-', '_', '.'])
        && prefix.is_none_or(|prefix| {
            prefix.len() <= 253 && ends_well(prefix) && of(prefix, &['-', '.'])
        })
}

/// Whether a field of this Rust type can hold a JSON value.
fn could_be(value: &serde_json::Value, ty: &str) -> bool {
    use serde_json::Value as Json;
    match ty {
        "bool" => value.is_boolean(),
        "String" => value.is_string(),
        "f64" => value.is_number(),
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" => {
            value.is_i64() || value.is_u64()
        }
        _ if ty.starts_with("Vec<") => matches!(value, Json::Array(_)),
        _ if ty.starts_with("BTreeMap<") => matches!(value, Json::Object(_)),
        _ => true,
    }
}

fn in_words(ty: &str) -> &'static str {
    match ty {
        "bool" => "a boolean",
        "String" => "a string",
        "f64" => "a number",
        _ if ty.starts_with("Vec<") => "a list",
        _ if ty.starts_with("BTreeMap<") => "a mapping",
        _ => "a whole number",
    }
}
