//! The rules for the kinds that objects own or refer to.

use super::{RbacRule, RuleScope, grants};
use crate::load::crd::Scope;
use crate::model::child::RelatedResource;
use crate::model::operator::{HandledKind, Operator};

/// The kinds that need a rule, each with its owners or users.
type Relatives<'a> = Vec<(&'a RelatedResource, Vec<&'a HandledKind>)>;

/// One rule for each kind of children, and one for each kind that objects refer to.
pub(super) fn rules(operator: &Operator) -> Vec<RbacRule> {
    let (mut owned, mut used): (Relatives<'_>, Relatives<'_>) = (Vec::new(), Vec::new());
    for kind in &operator.kinds {
        for child in &kind.children {
            add(&mut owned, &child.related, kind);
        }
        for it in &kind.uses {
            add(&mut used, &it.related, kind);
        }
    }
    let owned = owned.into_iter().map(|(related, owners)| {
        let of = names(&owners);
        let mut rule = rule(operator, related);
        rule.verbs = grants(
            &["get"],
            &format!("whether a new child of {of} exists already, and whose it is"),
        );
        rule.verbs.extend(grants(
            &["list", "watch"],
            &format!("notices changes of the children of {of}"),
        ));
        rule.verbs.extend(grants(
            &["create", "patch"],
            &format!("applies the children of {of}"),
        ));
        let deletes = |owner: &HandledKind| {
            let mut children = owner.children.iter().filter(|it| it.related == *related);
            children.any(|child| child.is_deleted_by_operator())
        };
        if owners.iter().any(|owner| deletes(owner)) {
            rule.verbs.extend(grants(
                &["delete"],
                &format!("deletes the children that {of} no longer has"),
            ));
        }
        rule
    });
    let used = used.into_iter().map(|(related, users)| {
        let mut rule = rule(operator, related);
        let of = names(&users);
        rule.verbs = grants(
            &["get", "list", "watch"],
            &format!("what objects of {of} refer to"),
        );
        rule
    });
    owned.chain(used).collect()
}

fn add<'a>(relatives: &mut Relatives<'a>, related: &'a RelatedResource, kind: &'a HandledKind) {
    let same = |known: &RelatedResource| {
        (&known.group, &known.plural) == (&related.group, &related.plural)
    };
    match relatives.iter_mut().find(|(known, _)| same(known)) {
        None => relatives.push((related, vec![kind])),
        Some((_, kinds)) if kinds.iter().any(|known| std::ptr::eq(*known, kind)) => {}
        Some((_, kinds)) => kinds.push(kind),
    }
}

fn names(kinds: &[&HandledKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
    names.join(", ")
}

fn rule(operator: &Operator, related: &RelatedResource) -> RbacRule {
    let is_fixed = operator.fixed_namespaces().is_some();
    RbacRule {
        scope: match related.scope {
            Scope::Namespaced if is_fixed => RuleScope::ServedNamespaces,
            Scope::Namespaced | Scope::Cluster => RuleScope::Cluster,
        },
        groups: vec![related.group.clone()],
        resources: vec![related.plural.clone()],
        names: Vec::new(),
        verbs: Vec::new(),
    }
}
