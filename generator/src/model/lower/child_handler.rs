//! Lowers what `on: reconcile` and `on: child` have of their own, and reports other options.

use super::lowering::{HandlerFamily, Lowering};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::manifest::{HandlerSection, MetadataFilters, OneOrMany, Trigger};
use crate::model::child::ChildDeclaration;
use crate::model::handler::ChildCause;
use crate::suggest::did_you_mean;

impl Lowering<'_> {
    /// The children that `on: child` is about.
    pub(super) fn child_cause(&mut self, section: &HandlerSection) -> Option<ChildCause> {
        let Some(kind) = &section.kind else {
            self.push(
                Diagnostic::error(Code::HandlerOption, "`on: child` needs `kind`")
                    .at(self.source, section.function.span, "of which kind?")
                    .help("write `kind: v1/Pod`, as in `children`"),
            );
            return None;
        };
        let names = |child: &ChildDeclaration| {
            let related = &child.related;
            [related.name(), related.kind.clone()]
        };
        let mut children = self.children.iter();
        if let Some(child) = children.find(|child| names(child).contains(&kind.value)) {
            return Some(ChildCause {
                kind: child.related.kind.clone(),
                object: child.related.object.clone(),
            });
        }
        let known: Vec<String> = self.children.iter().map(|it| it.related.name()).collect();
        let help = did_you_mean(&kind.value, known.iter().map(String::as_str));
        let help = help.unwrap_or_else(|| format!("add `{}` to `children`", kind.value));
        let message = format!("`{}` is not declared as a child", kind.value);
        self.push(
            Diagnostic::error(Code::UndeclaredChild, message)
                .at(self.source, kind.span, "not in `children`")
                .help(help),
        );
        None
    }

    /// Reports options that other handlers have, and options of these on other handlers.
    pub(super) fn check_related(
        &mut self,
        section: &HandlerSection,
        family: Option<&HandlerFamily>,
    ) {
        let (reconcile, child) = (
            is_on(section, Trigger::Reconcile),
            is_on(section, Trigger::Child),
        );
        let of_changes = [
            (
                "field",
                section.field.as_ref().map(|it| it.as_slice()[0].span),
            ),
            ("result", section.result.as_ref().map(|it| it.span)),
        ];
        for (key, span) in of_changes {
            if let Some(span) = span.filter(|_| reconcile || child) {
                let message = format!("`{key}` is for handlers of changes");
                let label = "it is called for the object as a whole";
                self.error(Code::HandlerOption, span, message, label);
            }
        }
        let first = |filters: &Option<MetadataFilters>| {
            let (key, _) = filters.as_ref()?.list.first()?;
            Some(key.span)
        };
        let filters = [
            ("labels", first(&section.labels)),
            ("annotations", first(&section.annotations)),
            ("when", section.when.as_ref().map(|it| it.span)),
        ];
        for (key, span) in filters {
            if let Some(span) = span.filter(|_| child) {
                let message = format!("`on: child` has no `{key}`");
                let label = "of the child, or of its owner?";
                self.error(Code::HandlerOption, span, message, label);
            }
        }
        let own = [
            (
                "kind",
                section.kind.as_ref().map(|it| it.span),
                child,
                "`on: child`",
            ),
            (
                "status",
                section.status.map(|it| it.span),
                reconcile,
                "`on: reconcile`",
            ),
        ];
        for (key, span, fits, owner) in own {
            if let Some(span) = span.filter(|_| family.is_some() && !fits) {
                let message = format!("`{key}` is for {owner}");
                self.error(Code::HandlerOption, span, message, "remove it");
            }
        }
    }
}

/// Whether `on` names the trigger.
pub(super) fn is_on(section: &HandlerSection, trigger: Trigger) -> bool {
    let mut triggers = section.on.iter().flat_map(OneOrMany::as_slice);
    triggers.any(|it| it.value == trigger)
}
