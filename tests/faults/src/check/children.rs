//! Children: at rest those of the last state, none deleted without a reason, and no write at rest.

use std::collections::BTreeMap;

use super::calls::{Call, Calls};
use super::{BrokenClaim, Claim, Evidence};
use crate::journal::LoggedStep;
use crate::watch_log::ChildVersion;
use crate::workload::RECONCILED;

pub(super) fn check(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = if evidence.tested.has_children() {
        at_rest(evidence)
    } else {
        Vec::new()
    };
    let deletions = evidence.child_watch.versions.iter().filter(|it| it.gone);
    for child in deletions {
        let by_others = evidence.deleted_children.contains(&child.uid)
            || evidence.deleted_namespaces.contains(&child.namespace);
        if !by_others && !is_owner_gone(evidence, calls, child) {
            broken.extend(unfounded(evidence, calls, child));
        }
    }
    for name in &evidence.written_at_rest {
        broken.push(Claim::NoWriteAtRest.broken(format!("{name} was written at rest")));
    }
    broken
}

/// The children of each object are those that its state asks for. The children of objects that are
/// gone are for the garbage collector.
fn at_rest(evidence: &Evidence) -> Vec<BrokenClaim> {
    let mut by_owner: BTreeMap<&str, Vec<(u64, Option<u64>)>> = BTreeMap::new();
    for child in evidence.children.values() {
        let owner = by_owner.entry(child.owner.as_str()).or_default();
        owner.push((child.number, child.edit));
    }
    let mut broken = Vec::new();
    for (name, object) in &evidence.widgets {
        let mut found = by_owner.remove(object.uid.as_str()).unwrap_or_default();
        found.sort_unstable();
        let wanted = (0..object.state.children()).map(|number| (number, Some(object.state.edit)));
        let wanted: Vec<_> = wanted.collect();
        if found != wanted {
            broken.push(Claim::Children.broken(format!(
                "{name}: the children (number, edit) are {found:?} and should be {wanted:?}"
            )));
        }
    }
    broken
}

/// Whether the child went with its owner.
fn is_owner_gone(evidence: &Evidence, calls: &Calls<'_>, child: &ChildVersion) -> bool {
    let mut existing = evidence.widgets.values();
    if evidence.watch.gaps > 0 && !existing.any(|it| it.uid == child.owner) {
        // The version with the deletion may be missing.
        return true;
    }
    let versions = calls.versions(&child.owner);
    // Without any version, the owner was gone before the suite saw it.
    versions.is_empty()
        || versions
            .iter()
            .any(|it| it.deleting && it.version < child.version)
}

/// The deletion of a child that no complete call of its owner left out.
fn unfounded(evidence: &Evidence, calls: &Calls<'_>, child: &ChildVersion) -> Option<BrokenClaim> {
    let all = calls.of_handler(&child.owner, RECONCILED).iter();
    let earlier: Vec<&Call<'_>> = all.filter(|call| call.begin.at < child.at).collect();
    // The call before the last one: its deletions may be executed when the next one has begun.
    let mut last = earlier.iter().rev().take(2);
    let founded = last.any(|call| {
        // Without records, the function itself deletes children, and may be killed after that.
        let is_complete = matches!(call.end, Some((_, LoggedStep::Success)));
        (is_complete || !evidence.tested.has_records())
            && call.begin.state.children() <= child.number
    });
    (!founded).then(|| {
        Claim::Children.broken(format!(
            "{} of {} was deleted at version {}, and no complete call left it out",
            child.name, child.owner, child.version
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Story, claims_of};
    use super::*;

    #[test]
    fn a_missing_child_and_one_too_many_are_found() {
        let mut story = Story::complete();
        story.evidence.children.clear();
        assert_eq!(claims_of(&story), [Claim::Children]);
        let story = Story::complete().with_child(1, 1);
        assert_eq!(claims_of(&story), [Claim::Children]);
    }

    #[test]
    fn an_old_child_is_found() {
        let mut story = Story::complete();
        for child in story.evidence.children.values_mut() {
            child.edit = Some(0);
        }
        assert_eq!(claims_of(&story), [Claim::Children]);
    }

    #[test]
    fn a_child_that_a_complete_call_wants_is_not_deleted() {
        let story = Story::complete().child_deleted(0);
        assert_eq!(claims_of(&story), [Claim::Children]);
        let story = Story::complete().child_deleted(1);
        assert_eq!(claims_of(&story), []);
    }

    #[test]
    fn a_function_that_deletes_children_itself_may_be_killed_after_that() {
        let story = Story::without_records().killed_in_call_without_children();
        assert_eq!(claims_of(&story.child_deleted(0)), []);
        let story = Story::without_records().child_deleted(0);
        assert_eq!(claims_of(&story), [Claim::Children]);
    }

    #[test]
    fn users_may_delete_children() {
        let mut story = Story::complete().child_deleted(0);
        story.evidence.deleted_children.insert("c0".to_owned());
        assert_eq!(claims_of(&story), []);
    }

    #[test]
    fn a_write_at_rest_is_found() {
        let mut story = Story::complete();
        story.evidence.written_at_rest.insert("here/w1".to_owned());
        assert_eq!(claims_of(&story), [Claim::NoWriteAtRest]);
    }
}
