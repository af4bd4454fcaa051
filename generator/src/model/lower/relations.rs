//! Lowers `children` and `uses` of a kind, and reports those that make no sense.

use super::FoundKind;
use super::relation_finder::{KindRef, Relations};
use super::use_path;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::load::manifest::{
    ChildSection, ChildUpdate, Manifest, ResourceSection, Spanned, Trigger,
};
use crate::load::schema::Schema;
use crate::model::child::{ChildDeclaration, RelatedResource, UsedKind};
use crate::model::operator::{HandledKind, KindOrigin};
use crate::model::status_subresource::StatusSubresource;

/// Lowers the entries of one kind, once all types have their names.
pub(super) struct RelationLowering<'a, 'm> {
    pub(super) manifest: &'a Manifest,
    pub(super) kinds: &'a [FoundKind<'m>],
    pub(super) relations: &'a Relations,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl RelationLowering<'_, '_> {
    /// The children and the used kinds of the kind at this place.
    pub(super) fn lower(
        &mut self,
        place: usize,
        schema: Option<&Schema>,
    ) -> (Vec<ChildDeclaration>, Vec<UsedKind>) {
        let (owner, section) = &self.kinds[place];
        let mut children: Vec<ChildDeclaration> = Vec::new();
        for (entry, found) in section.children.iter().zip(&self.relations.children[place]) {
            let Some(found) = found else { continue };
            let child = child(&entry.section(), self.related(*found));
            if self.is_sound(owner, &entry.section(), &child, &children) {
                children.push(child);
            }
        }
        let mut uses = Vec::new();
        for (entry, found) in section.uses.iter().zip(&self.relations.uses[place]) {
            for path in [Some(&entry.by), entry.namespace.as_ref()]
                .into_iter()
                .flatten()
            {
                let problem = use_path::check(path, owner, schema, self.manifest.source);
                self.diagnostics.extend(problem);
            }
            let Some(found) = found else { continue };
            uses.push(UsedKind {
                related: self.related(*found),
                by: entry.by.value.clone(),
                namespace: entry.namespace.as_ref().map(|it| it.value.clone()),
            });
        }
        self.require_reconcile(section);
        (children, uses)
    }

    fn related(&self, found: KindRef) -> RelatedResource {
        match found {
            KindRef::Builtin(builtin) => RelatedResource {
                group: builtin.group.to_owned(),
                version: builtin.version.to_owned(),
                kind: builtin.kind.to_owned(),
                plural: builtin.plural.to_owned(),
                scope: builtin.scope,
                status: builtin.status,
                is_custom: false,
                object: builtin.type_path(),
            },
            KindRef::Handled(place) => {
                let (kind, _) = &self.kinds[place];
                RelatedResource {
                    group: kind.group.clone(),
                    version: kind.version.clone(),
                    kind: kind.kind.clone(),
                    plural: kind.plural.clone(),
                    scope: kind.scope,
                    status: kind.status,
                    is_custom: matches!(kind.origin, KindOrigin::Custom(_)),
                    object: kind.object_path(),
                }
            }
            KindRef::Typed(place) => {
                let resource = &self.relations.types[place];
                let version = resource.main_version();
                RelatedResource {
                    group: resource.group.clone(),
                    version: version.name.clone(),
                    kind: resource.names.kind.clone(),
                    plural: resource.names.plural.clone(),
                    scope: resource.scope,
                    status: if version.status {
                        StatusSubresource::Present
                    } else {
                        StatusSubresource::Absent
                    },
                    is_custom: true,
                    object: resource.type_path(version, &resource.type_name),
                }
            }
        }
    }

    /// Reports a child that no owner can have, or that has contradictory options.
    fn is_sound(
        &mut self,
        owner: &HandledKind,
        section: &ChildSection,
        child: &ChildDeclaration,
        others: &[ChildDeclaration],
    ) -> bool {
        let span = section.kind.as_ref().or(section.crd.as_ref());
        let span = span.map_or(section.span, |it| it.span);
        let (kind, source) = (&child.related, self.manifest.source);
        let same =
            |other: &RelatedResource| (&other.group, &other.kind) == (&kind.group, &kind.kind);
        if (&owner.group, &owner.kind) == (&kind.group, &kind.kind) {
            let message = format!("{} cannot be a child of {}", kind.kind, owner.kind);
            self.diagnostics.push(
                Diagnostic::error(Code::ChildKind, message)
                    .at(source, span, "the kind of its owner")
                    .help("each child would be an owner with children of its own, without end"),
            );
            return false;
        }
        if others.iter().any(|other| same(&other.related)) {
            let message = format!("{} is a child twice", kind.kind);
            self.diagnostics
                .push(Diagnostic::error(Code::ChildKind, message).at(source, span, "named again"));
            return false;
        }
        if let Some(one) = section
            .one_at_a_time
            .filter(|one| one.value && child.update == ChildUpdate::OnDelete)
        {
            let message = "`one_at_a_time` means nothing with `update: on-delete`";
            self.diagnostics.push(
                Diagnostic::error(Code::ChildOption, message)
                    .at(source, one.span, "the operator updates none of them")
                    .help("remove it, or take `update: recreate`"),
            );
            return false;
        }
        true
    }

    /// Only `reconcile` is called for what objects use.
    fn require_reconcile(&mut self, section: &ResourceSection) {
        let mut triggers = section
            .handlers
            .iter()
            .flat_map(|handler| handler.on.iter().flat_map(|on| on.as_slice()));
        let Some(first) = section.uses.first() else {
            return;
        };
        if triggers.any(|trigger| trigger.value == Trigger::Reconcile) {
            return;
        }
        self.diagnostics.push(
            Diagnostic::error(Code::UselessUse, "`uses` needs a `reconcile` handler")
                .at(self.manifest.source, first.span, "nothing is called for it")
                .help("add `{on: reconcile, fn: reconcile}` to `handlers`"),
        );
    }
}

fn child(section: &ChildSection, related: RelatedResource) -> ChildDeclaration {
    let flag = |written: Option<Spanned<bool>>| written.map(|it| it.value);
    ChildDeclaration {
        related,
        update: section.update.map(|it| it.value).unwrap_or_default(),
        one_at_a_time: flag(section.one_at_a_time).unwrap_or(false),
        prune: flag(section.prune).unwrap_or(true),
        bodies: flag(section.bodies).unwrap_or(false),
    }
}
