//! Lowers all handlers of one kind, and reports conflicts between them.

use std::collections::BTreeMap;

use super::field::FieldSource;
use super::lowering::{LimitsCheck, Lowering, ResolveField};
use super::{implied_notes, index, shared_params, webhook};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::load::manifest::{HandlerSection, ResourceSection, WebhookSection};
use crate::load::schema::Schema;
use crate::model::handler::{FilterSubject, Handler, HandlerCause, HandlerFilter};
use crate::model::operator::{HandledKind, KindOrigin};
use crate::model::param::Param;
use crate::model::webhook::{Webhook, WebhookRole};
use crate::rust::RustType;

/// Lowers the handlers of a kind whose module and trait have their names.
pub(super) struct KindLowering<'a> {
    pub(super) source: SourceId,
    pub(super) kind: &'a HandledKind,
    /// The schema of its objects, if it has one.
    pub(super) schema: Option<&'a Schema>,
    /// The place where the manifest lets webhooks stay when the operator stops.
    pub(super) unmanaged_webhooks: Option<Span>,
    /// The types of all kinds of the operator, with their paths.
    pub(super) kind_types: &'a BTreeMap<String, crate::rust::RustPath>,
    pub(super) diagnostics: &'a mut Diagnostics,
}

/// One use of a method name, with the signature that it needs.
struct MethodUse {
    signature: String,
    span: Span,
}

impl KindLowering<'_> {
    pub(super) fn lower(mut self, section: &ResourceSection) -> (Vec<Handler>, Vec<Webhook>) {
        let (source, kind) = (self.source, self.kind);
        let fields = match &kind.origin {
            KindOrigin::Builtin(builtin) => FieldSource::Builtin(builtin),
            KindOrigin::Custom(resource) => FieldSource::Custom(resource),
            KindOrigin::Selected(_) => FieldSource::Selected,
        };
        let resolve = |keys: &[String], span: Span, diagnostics: &mut Diagnostics| {
            fields.resolve(keys, source, span, diagnostics)
        };
        let in_status = |id: &str| match &kind.origin {
            KindOrigin::Custom(resource) => resource.result_type(resource.main_version(), id),
            KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
        };
        let mut handlers: Vec<(Handler, &HandlerSection)> = Vec::new();
        for written in &section.handlers {
            let lowering = self.lowering(&resolve, &in_status);
            for handler in lowering.handler(written) {
                if self.is_new(&handler, written, &handlers) {
                    handlers.push((handler, written));
                }
            }
        }
        let indices: Vec<HandlerSection> = section.indices.iter().map(index::as_handler).collect();
        for (written, as_handler) in section.indices.iter().zip(&indices) {
            let lowering = self.lowering(&resolve, &in_status);
            if let Some(handler) = lowering.index(written, as_handler)
                && self.is_new(&handler, as_handler, &handlers)
            {
                handlers.push((handler, as_handler));
            }
        }
        let mut webhooks: Vec<(Webhook, &WebhookSection)> = Vec::new();
        for written in &section.admission {
            let unmanaged = self.unmanaged_webhooks;
            let lowering = self.lowering(&resolve, &in_status);
            if let Some(webhook) = lowering.webhook(written, kind, unmanaged)
                && self.is_new_webhook(&webhook, written, &webhooks)
            {
                webhooks.push((webhook, written));
            }
        }
        webhook::note_unchecked(
            source,
            self.kind,
            &section.admission,
            self.unmanaged_webhooks,
            self.diagnostics,
        );
        shared_params::share(&mut handlers, &mut webhooks);
        self.check_methods(&handlers, &webhooks);
        implied_notes::add_notes(source, self.kind, &handlers, self.diagnostics);
        (
            handlers.into_iter().map(|(handler, _)| handler).collect(),
            webhooks.into_iter().map(|(webhook, _)| webhook).collect(),
        )
    }

    fn lowering<'b>(
        &'b mut self,
        resolve: &'b ResolveField<'b>,
        in_status: &'b dyn Fn(&str) -> Option<RustType>,
    ) -> Lowering<'b> {
        Lowering {
            source: self.source,
            schema: self.schema,
            limits: LimitsCheck::Enforced,
            resolve,
            in_status,
            kind_types: self.kind_types,
            children: &self.kind.children,
            diagnostics: self.diagnostics,
        }
    }

    fn is_new_webhook(
        &mut self,
        webhook: &Webhook,
        written: &WebhookSection,
        known: &[(Webhook, &WebhookSection)],
    ) -> bool {
        let same =
            |other: &Webhook| (other.role, other.full_id()) == (webhook.role, webhook.full_id());
        let Some((_, first)) = known.iter().find(|(other, _)| same(other)) else {
            return true;
        };
        let name = |section: &WebhookSection| {
            let name = section.id.as_ref().or(section.function());
            name.map_or(section.span, |name| name.span)
        };
        self.diagnostics.push(
            Diagnostic::error(
                Code::DuplicateHandler,
                format!("two webhooks have the id `{}`", webhook.full_id()),
            )
            .at(self.source, name(written), "the same id again")
            .at(self.source, name(first), "first used here")
            .help("list all operations in one entry, or give one of them another `id`"),
        );
        false
    }

    fn is_new(
        &mut self,
        handler: &Handler,
        written: &HandlerSection,
        known: &[(Handler, &HandlerSection)],
    ) -> bool {
        if !self.is_only_reconcile(handler, written, known) {
            return false;
        }
        let id = handler.full_id();
        // The start is compared first: it needs no new text for each of many handlers.
        let is_same = |other: &Handler| id.starts_with(&other.id) && other.full_id() == id;
        let Some((_, first)) = known.iter().find(|(other, _)| is_same(other)) else {
            return true;
        };
        let name = |section: &HandlerSection| section.id.as_ref().unwrap_or(&section.function).span;
        self.diagnostics.push(
            Diagnostic::error(
                Code::DuplicateHandler,
                format!("two handlers have the id `{id}`"),
            )
            .at(self.source, name(written), "the same id again")
            .at(self.source, name(first), "first used here")
            .help(if handler.index().is_some() {
                "give the index another name"
            } else {
                "list all occasions in one `on: [...]`, or give one of them another `fn` or `id`"
            }),
        );
        false
    }

    /// What a call leaves out is pruned, so that two handlers would delete each other's children.
    fn is_only_reconcile(
        &mut self,
        handler: &Handler,
        written: &HandlerSection,
        known: &[(Handler, &HandlerSection)],
    ) -> bool {
        let reconciles = |handler: &Handler| matches!(handler.cause, HandlerCause::Reconcile(_));
        if !reconciles(handler) {
            return true;
        }
        let Some((_, first)) = known.iter().find(|(other, _)| reconciles(other)) else {
            return true;
        };
        let message = format!("{} has two `reconcile` handlers", self.kind.kind);
        self.diagnostics.push(
            Diagnostic::error(Code::DuplicateHandler, message)
                .at(self.source, written.function.span, "the second one")
                .at(self.source, first.function.span, "the first one")
                .help("apply all children in one function: what it leaves out is deleted"),
        );
        false
    }

    /// One name is one method, so all its uses must agree on the signature.
    fn check_methods(
        &mut self,
        handlers: &[(Handler, &HandlerSection)],
        webhooks: &[(Webhook, &WebhookSection)],
    ) {
        let mut first: BTreeMap<String, MethodUse> = BTreeMap::new();
        let uses = handlers
            .iter()
            .flat_map(|(handler, written)| uses(handler, written))
            .chain(
                webhooks
                    .iter()
                    .flat_map(|(webhook, written)| webhook_uses(webhook, written)),
            );
        for (name, usage) in uses {
            match first.get(&name) {
                None => {
                    first.insert(name, usage);
                }
                Some(known) if known.signature == usage.signature => {}
                Some(known) => self.diagnostics.push(
                    Diagnostic::error(
                        Code::DuplicateHandler,
                        format!("`{name}` would need two signatures"),
                    )
                    .at(
                        self.source,
                        usage.span,
                        format!("here it takes {}", usage.signature),
                    )
                    .at(
                        self.source,
                        known.span,
                        format!("here it takes {}", known.signature),
                    )
                    .help("give one of them another name; `id` keeps the id that objects carry"),
                ),
            }
        }
    }
}

fn with_param(context: String, param: Option<&Param>) -> String {
    match param {
        Some(param) => format!("{context}, with {} as its `param`,", param.ty.words()),
        None => context,
    }
}

fn webhook_uses(webhook: &Webhook, written: &WebhookSection) -> Vec<(String, MethodUse)> {
    let span = written.function().map_or(written.span, |name| name.span);
    let object = if webhook.endpoint.has_the_object() {
        "an object"
    } else {
        "JSON"
    };
    let signature = match webhook.role {
        WebhookRole::Validate => format!("a validation of {object}"),
        WebhookRole::Mutate => format!("a mutation of {object}"),
    };
    let signature = with_param(signature, webhook.param.as_ref());
    let field = webhook
        .field
        .as_ref()
        .map_or_else(|| "a value".to_owned(), |field| field.rust_type.short());
    let mut uses = vec![(webhook.method.clone(), MethodUse { signature, span })];
    uses.extend(predicate_uses(&webhook.filters, object, &field, |_| span));
    uses
}

fn uses(handler: &Handler, written: &HandlerSection) -> Vec<(String, MethodUse)> {
    let field = handler
        .field()
        .map_or_else(|| "a value".to_owned(), |field| field.rust_type.short());
    let context = match &handler.cause {
        HandlerCause::Change(_) => "a change".to_owned(),
        HandlerCause::Field { .. } => format!("a change of {field}"),
        HandlerCause::Event { .. } => "an event".to_owned(),
        HandlerCause::Daemon(_) => "the object of a daemon".to_owned(),
        HandlerCause::Timer(_) => "the object of a timer".to_owned(),
        HandlerCause::Index(indexing) => format!("an object for `{}`", indexing.index.name),
        HandlerCause::Reconcile(_) => "an object to reconcile".to_owned(),
        HandlerCause::Child(child) => format!("a {} of an object", child.kind),
    };
    let context = with_param(context, handler.param.as_ref());
    let signature = match &handler.result {
        Some(result) => format!("{context} and returns {}", result.short()),
        None => context,
    };
    let mut uses = vec![(
        handler.method.clone(),
        MethodUse {
            signature,
            span: written.function.span,
        },
    )];
    if let Some(name) = handler.computed_delay() {
        let signature = "the object, for a delay".to_owned();
        let span = written
            .predicate_span(name)
            .unwrap_or(written.function.span);
        uses.push((name.to_owned(), MethodUse { signature, span }));
    }
    let span = |name: &str| written.predicate_span(name);
    uses.extend(predicate_uses(
        &handler.filters,
        "an object",
        &field,
        |name| span(name).unwrap_or(written.function.span),
    ));
    uses
}

/// The uses of predicates; `object` and `field` are the types of what they decide about.
fn predicate_uses(
    filters: &[HandlerFilter],
    object: &str,
    field: &str,
    span: impl Fn(&str) -> Span,
) -> Vec<(String, MethodUse)> {
    let predicates = filters.iter().flat_map(|filter| {
        let predicates = filter.predicates();
        predicates.map(move |predicate| (&filter.subject, predicate))
    });
    let uses = predicates.map(|(subject, predicate)| {
        let signature = match subject {
            FilterSubject::Object => object.to_owned(),
            FilterSubject::Label(_) | FilterSubject::Annotation(_) => {
                format!("a text of {object}")
            }
            FilterSubject::Value | FilterSubject::Old | FilterSubject::New => {
                format!("a value of {field} of {object}")
            }
        };
        let name = predicate.method.clone();
        let span = span(&name);
        let signature = with_param(signature, predicate.param.as_ref());
        (name, MethodUse { signature, span })
    });
    uses.collect()
}
