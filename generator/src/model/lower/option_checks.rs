//! Reports options of a handler that contradict each other or do not apply to it.

use std::collections::BTreeSet;

use super::child_handler::is_on;
use super::lowering::{HandlerFamily, Lowering};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::manifest::{
    ErrorMode, HandlerSection, ManifestDuration, OneOrMany, Spanned, Trigger,
};
use crate::model::handler::TypedField;

impl Lowering<'_> {
    /// Checks everything that needs only the entry itself.
    pub(super) fn check(
        &mut self,
        section: &HandlerSection,
        family: Option<&HandlerFamily>,
        fields: &[TypedField],
    ) {
        self.check_options(section, family);
        self.check_related(section, family);
        self.check_background(section);
        self.check_filters(section, fields);
        self.check_id(section);
    }

    fn check_options(&mut self, section: &HandlerSection, family: Option<&HandlerFamily>) {
        if matches!(family, Some(HandlerFamily::Field)) && section.field.is_none() {
            self.error(
                Code::HandlerOption,
                section.function.span,
                "a field handler needs `field`",
                "which field?",
            );
        }
        self.check_value_options(section, family);
        if matches!(family, Some(HandlerFamily::Event)) {
            self.check_event_options(section);
        }
        let triggers = match family {
            Some(HandlerFamily::Change(triggers)) => triggers.clone(),
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

    /// Checks the options about repeated calls: an event handler is called once for each event,
    /// unless the manifest asks for more.
    fn check_event_options(&mut self, section: &HandlerSection) {
        let temporary = |mode: &Spanned<ErrorMode>| mode.value == ErrorMode::Temporary;
        if section.retries.is_some() || section.errors.as_ref().is_some_and(temporary) {
            return;
        }
        let errors = section.errors.map(|errors| ("errors", errors.span));
        let backoff = section.backoff.map(|backoff| ("backoff", backoff.span));
        for (key, span) in errors.into_iter().chain(backoff) {
            let message = format!(
                "`{key}` means nothing here: an event handler is called once for each event"
            );
            self.push(
                Diagnostic::error(Code::HandlerOption, message)
                    .at(self.source, span, "remove it")
                    .help(
                        "`errors: temporary` or `retries` calls it again after an error, as long \
                         as the operator runs",
                    ),
            );
        }
    }

    /// Checks `value`, `old` and `new`, which need a field and exclude each other.
    fn check_value_options(&mut self, section: &HandlerSection, family: Option<&HandlerFamily>) {
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
                    Some(HandlerFamily::Event | HandlerFamily::Daemon | HandlerFamily::Timer(_))
                )
            {
                let message = format!(
                    "{} has no `{key}`: it is not called for changes",
                    noun(section)
                );
                self.error(Code::HandlerOption, span, message, "only for changes");
            }
        }
    }

    /// Checks the options of timers and daemons, on handlers of any family.
    fn check_background(&mut self, section: &HandlerSection) {
        let (timer, daemon) = (section.timer.is_some(), section.daemon.is_some());
        let repeated = timer || is_on(section, Trigger::Reconcile);
        let span = |time: &Option<Spanned<ManifestDuration>>| time.map(|time| time.span);
        let sharp = section.sharp.map(|sharp| sharp.span);
        let delay = section.initial_delay.as_ref().map(|delay| delay.span);
        for (key, span, fits, owners) in [
            (
                "interval",
                span(&section.interval),
                repeated,
                "timers and `on: reconcile`",
            ),
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
            if let Some(time) = time.filter(|time| repeated && time.value.0.is_zero()) {
                let message = format!(
                    "`{key}` must not be zero: {} would run without pause",
                    noun(section)
                );
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

    /// Checks the id, which becomes part of annotation names.
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
                        "not valid in the name of an annotation",
                    )
                    .help("use letters, digits, `-`, `_`, `.` and `/`"),
            );
        }
    }
}

/// The noun for an entry in messages.
fn noun(section: &HandlerSection) -> &'static str {
    let is_event = |on: &OneOrMany<Trigger>| {
        let mut triggers = on.as_slice().iter();
        triggers.any(|trigger| trigger.value == Trigger::Event)
    };
    match (&section.timer, &section.daemon, &section.on) {
        (Some(_), _, _) => "a timer",
        (_, Some(_), _) => "a daemon",
        (_, _, Some(on)) if is_event(on) => "an event handler",
        _ if is_on(section, Trigger::Reconcile) => "a reconcile handler",
        _ if is_on(section, Trigger::Child) => "a handler of children",
        _ => "a change handler",
    }
}
