//! Notes on consequences of a kind's handlers: finalizers, and results that the schema drops.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId};
use crate::load::manifest::HandlerSection;
use crate::model::handler::{Handler, HandlerCause};
use crate::model::operator::{HandledKind, KindOrigin};

/// A handler, and the entry of the manifest that it comes from.
type EntryWithHandler<'a> = (Handler, &'a HandlerSection);

/// Adds one note for each consequence. Its title names no handler, so that it is printed once for
/// a kind, and not again when a handler is added.
pub(super) fn add_notes(
    source: SourceId,
    kind: &HandledKind,
    handlers: &[EntryWithHandler<'_>],
    diagnostics: &mut Diagnostics,
) {
    diagnostics.extend(finalizers(source, kind, handlers));
    diagnostics.extend(results(source, kind, handlers));
}

/// Some handlers imply a finalizer.
fn finalizers(
    source: SourceId,
    kind: &HandledKind,
    handlers: &[EntryWithHandler<'_>],
) -> Option<Diagnostic> {
    let holding: Vec<_> = handlers
        .iter()
        .filter(|(handler, _)| handler.holds_deletion())
        .collect();
    if holding.is_empty() {
        return None;
    }
    let message = format!(
        "objects of {} wait for handlers when they are deleted",
        kind.kind
    );
    let has = |background: bool| {
        let mut handlers = holding.iter().map(|(handler, _)| handler);
        handlers.any(|handler| handler.is_background() == background)
    };
    let optional = has(false)
        .then_some("`optional: true` on a delete handler lets Kubernetes delete objects while no operator runs");
    let filters = has(true).then_some(
        "filters keep timers and daemons, and the finalizer, away from objects that do not need them",
    );
    let help: Vec<_> = optional.into_iter().chain(filters).collect();
    let note = Diagnostic::note(Code::HoldsDeletion, message).help(help.join("; "));
    Some(at_each(note, source, &holding, |_| {
        "implies a finalizer".to_owned()
    }))
}

/// The result of a handler goes to `status.<id>`, which the schema may not declare.
fn results(
    source: SourceId,
    kind: &HandledKind,
    handlers: &[EntryWithHandler<'_>],
) -> Option<Diagnostic> {
    let KindOrigin::Custom(resource) = &kind.origin else {
        return None;
    };
    let is_lost = |handler: &Handler| {
        let path = ["status", &handler.full_id()];
        let delivers = !matches!(
            handler.cause,
            HandlerCause::Index(_) | HandlerCause::Reconcile(_) | HandlerCause::Child(_)
        );
        delivers && resource.field(resource.main_version(), &path).is_err()
    };
    let losing: Vec<_> = handlers
        .iter()
        .filter(|(handler, _)| is_lost(handler))
        .collect();
    if losing.is_empty() {
        return None;
    }
    let message = format!("the schema of {} drops results of its handlers", kind.kind);
    let note = Diagnostic::note(Code::PrunedResults, message).help(
        "this matters to functions that call `set_result`: declare these fields in the schema, \
         or `x-kubernetes-preserve-unknown-fields: true` for all of `status`",
    );
    Some(at_each(note, source, &losing, |handler| {
        format!("there is no `status.{}`", handler.full_id())
    }))
}

/// Points to the function of each handler; an entry for several fields is shown once.
fn at_each(
    note: Diagnostic,
    source: SourceId,
    handlers: &[&EntryWithHandler<'_>],
    label: impl Fn(&Handler) -> String,
) -> Diagnostic {
    let mut spans = Vec::new();
    handlers.iter().fold(note, |note, (handler, written)| {
        let span = written.function.span;
        if spans.contains(&span) {
            return note;
        }
        spans.push(span);
        note.at(source, span, label(handler))
    })
}
