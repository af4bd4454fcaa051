//! Lowers one webhook of the manifest.

use std::time::Duration;

use super::lowering::{LimitsCheck, Lowering};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity, SourceId, Span};
use crate::load::manifest::{
    ConfigurationOwner, HandlerSection, Manifest, OneOrMany, Spanned, Trigger, WebhookSection,
};
use crate::model::operator::{HandledKind, KindOrigin};
use crate::model::status_subresource::StatusSubresource;
use crate::model::webhook::{Webhook, WebhookEndpoint, WebhookRole};

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

impl Lowering<'_> {
    /// One webhook; `None` if the entry is wrong. `unmanaged` is the place where the manifest lets
    /// all webhooks stay when the operator stops.
    pub(super) fn webhook(
        mut self,
        section: &WebhookSection,
        kind: &HandledKind,
        unmanaged: Option<Span>,
    ) -> Option<Webhook> {
        let before = self.diagnostics.count(Severity::Error);
        let role = self.role(section);
        self.check_timeout(section);
        let endpoint = self.endpoint(section, kind);
        if let Some(operations) = &section.operations {
            self.check_operations(operations.as_slice());
        }
        self.warn_of_blocking(section, kind, unmanaged);
        let function = section.function()?;
        let sound = self.diagnostics.count(Severity::Error) == before;
        if role == Some(WebhookRole::Mutate) {
            self.limits = LimitsCheck::Unchecked;
        }
        // The options that it shares with handlers are checked as for a handler.
        let handlers = self.handler(&as_handler(section, function));
        let handler = handlers.into_iter().next()?;
        let field = handler.field().cloned();
        let is = |option: Option<Spanned<bool>>| option.is_some_and(|option| option.value);
        let webhook = Webhook {
            id: handler.id,
            method: handler.method,
            role: role?,
            operations: section
                .operations
                .iter()
                .flat_map(|operations| operations.as_slice())
                .map(|operation| operation.value)
                .collect(),
            endpoint,
            side_effects: is(section.side_effects),
            ignore_failures: is(section.ignore_failures),
            persistent: is(section.persistent),
            timeout: section.timeout.map(|timeout| timeout.value.0),
            field,
            filters: handler.filters,
            param: handler.param,
        };
        sound.then_some(webhook)
    }

    fn role(&mut self, section: &WebhookSection) -> Option<WebhookRole> {
        match (&section.validate, &section.mutate) {
            (Some(_), None) => Some(WebhookRole::Validate),
            (None, Some(_)) => Some(WebhookRole::Mutate),
            (Some(_), Some(mutate)) => {
                self.push(
                    Diagnostic::error(Code::WebhookRole, "a webhook either validates or mutates")
                        .at(self.source, mutate.span, "one of the two is too many")
                        .help("declare a second webhook"),
                );
                None
            }
            (None, None) => {
                self.error(
                    Code::WebhookRole,
                    section.span,
                    "a webhook needs `validate` or `mutate`",
                    "the name of its function is missing",
                );
                None
            }
        }
    }

    fn check_timeout(&mut self, section: &WebhookSection) {
        let Some(timeout) = section.timeout else {
            return;
        };
        let duration = timeout.value.0;
        if !(SHORTEST..=LONGEST).contains(&duration) || duration.subsec_nanos() != 0 {
            self.error(
                Code::HandlerOption,
                timeout.span,
                "the `timeout` of a webhook is a number of seconds from 1 to 30",
                "the API server does not wait that long",
            );
        }
    }

    fn check_operations(&mut self, operations: &[Spanned<crate::load::manifest::Operation>]) {
        for (place, operation) in operations.iter().enumerate() {
            if operations[..place]
                .iter()
                .any(|it| it.value == operation.value)
            {
                self.error(
                    Code::HandlerOption,
                    operation.span,
                    "`operations` names the same operation twice",
                    "remove one",
                );
            }
        }
    }

    fn endpoint(&mut self, section: &WebhookSection, kind: &HandledKind) -> WebhookEndpoint {
        let Some(subresource) = &section.subresource else {
            return WebhookEndpoint::Main;
        };
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match subresource.value.as_str() {
            "*" => WebhookEndpoint::All,
            name if name.is_empty() || !name.chars().all(is_name) => {
                self.error(
                    Code::HandlerOption,
                    subresource.span,
                    format!("`{name}` cannot be a subresource"),
                    "write it like `status` or `scale`, or \"*\"",
                );
                WebhookEndpoint::Main
            }
            name => {
                let missing = match (&kind.origin, name) {
                    (KindOrigin::Custom(_), "status") => kind.status == StatusSubresource::Absent,
                    (KindOrigin::Custom(resource), "scale") => {
                        resource.main_version().scale.is_none()
                    }
                    (KindOrigin::Custom(_), _) => true,
                    (KindOrigin::Builtin(_) | KindOrigin::Selected(_), _) => false,
                };
                if missing {
                    self.error(
                        Code::HandlerOption,
                        subresource.span,
                        format!("{} has no subresource `{name}`", kind.kind),
                        "the API server would never call the webhook",
                    );
                }
                WebhookEndpoint::Subresource(name.to_owned())
            }
        }
    }

    fn warn_of_blocking(
        &mut self,
        section: &WebhookSection,
        kind: &HandledKind,
        unmanaged: Option<Span>,
    ) {
        let ignores = section.ignore_failures.is_some_and(|it| it.value);
        let Some(function) = section.function().filter(|_| !ignores) else {
            return;
        };
        let persistent = section.persistent.filter(|persistent| persistent.value);
        let staying = persistent
            .map(|persistent| (persistent.span, "it stays when the operator stops"))
            .or(unmanaged.map(|span| (span, "all webhooks stay when the operator stops")));
        let diagnostic = match (&kind.origin, staying) {
            (KindOrigin::Builtin(_), _) => Diagnostic::warning(
                Code::BlockingWebhook,
                format!(
                    "while the operator does not answer, the API server rejects requests for {} in the whole cluster",
                    kind.kind
                ),
            )
            .at(self.source, function.span, "the cluster itself needs this kind"),
            (KindOrigin::Selected(selector), _) => Diagnostic::warning(
                Code::BlockingWebhook,
                format!(
                    "while the operator does not answer, the API server rejects requests for all kinds of {selector}",
                ),
            )
            .at(self.source, function.span, "the cluster itself may need some of them"),
            (KindOrigin::Custom(_), Some((span, label))) => Diagnostic::note(
                Code::BlockingWebhook,
                format!(
                    "while no operator runs, the API server rejects requests for {}",
                    kind.kind
                ),
            )
            .at(self.source, span, label),
            (KindOrigin::Custom(_), None) => return,
        };
        self.push(diagnostic.help("with `ignore_failures: true` the API server admits them"));
    }
}

/// The place where the manifest leaves the webhook configurations to cert-manager, so that they
/// stay when the operator stops.
pub(super) fn unmanaged(manifest: &Manifest) -> Option<Span> {
    let admission = manifest.operator.admission.as_ref()?;
    let configuration = admission.configuration?;
    (configuration.value == ConfigurationOwner::CertManager).then_some(configuration.span)
}

/// Notes that webhooks are not called while no operator runs, unless the manifest says what should
/// happen then.
pub(super) fn note_unchecked(
    source: SourceId,
    kind: &HandledKind,
    sections: &[WebhookSection],
    unmanaged: Option<Span>,
    diagnostics: &mut Diagnostics,
) {
    // With `ignore_failures`, requests pass without an answer in any case.
    let tolerant = |it: &WebhookSection| it.ignore_failures.is_some_and(|it| it.value);
    let mut undecided: Vec<&WebhookSection> = sections.iter().collect();
    undecided.retain(|it| it.persistent.is_none() && !tolerant(it));
    let functions = undecided.into_iter().filter_map(WebhookSection::function);
    let functions: Vec<_> = functions.collect();
    let Some(first) = functions.first().filter(|_| unmanaged.is_none()) else {
        return;
    };
    let names: Vec<String> = functions
        .iter()
        .map(|it| format!("`{}`", it.value))
        .collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    let message = format!(
        "while no operator runs, {} of {} {verb} not called, and requests pass",
        names.join(", "),
        kind.kind
    );
    diagnostics.push(
        Diagnostic::note(Code::UncheckedRequests, message)
            .at(source, first.span, "removed when the operator stops")
            .help("`persistent: true` keeps it, and the API server rejects requests then; `persistent: false` confirms"),
    );
}

fn as_handler(section: &WebhookSection, function: &Spanned<String>) -> HandlerSection {
    HandlerSection {
        span: section.span,
        on: Some(OneOrMany::One(Spanned {
            value: Trigger::Update,
            span: section.span,
        })),
        function: function.clone(),
        timer: None,
        daemon: None,
        id: section.id.clone(),
        kind: None,
        status: None,
        field: section.field.clone().map(OneOrMany::One),
        value: section.value.clone(),
        old: section.old.clone(),
        new: section.new.clone(),
        labels: section.labels.clone(),
        annotations: section.annotations.clone(),
        when: section.when.clone(),
        param: section.param.clone(),
        param_type: None,
        result: None,
        errors: None,
        timeout: None,
        retries: None,
        backoff: None,
        optional: None,
        deleted: None,
        interval: None,
        sharp: None,
        idle: None,
        initial_delay: None,
        cancellation_backoff: None,
        cancellation_timeout: None,
        cancellation_polling: None,
    }
}
