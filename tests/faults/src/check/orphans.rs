//! Nothing is left behind: facts on objects, finalizers, configurations, memory, tasks, descriptors.

use super::calls::Calls;
use super::{BrokenClaim, Claim, Evidence};

pub(super) fn check(evidence: &Evidence, _: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    for (name, object) in &evidence.widgets {
        if !object.is_settled(evidence.tested) {
            broken.push(Claim::NoOrphans.broken(format!(
                "{name} does not come to rest: deleting {}, held {}, records {:?}, last handled edit {:?} of {}",
                object.deleting,
                object.held,
                object.records.keys().collect::<Vec<_>>(),
                object.base.as_ref().map(|base| base.edit),
                object.state.edit,
            )));
        }
    }
    for left in &evidence.left_behind {
        broken.push(Claim::NoOrphans.broken(format!("{left} is left behind")));
    }
    if let Some((before, after)) = &evidence.footprints {
        for text in after.excess_over(before) {
            broken.push(Claim::Footprint.broken(text));
        }
    }
    if evidence.admitted > 0 {
        broken.push(Claim::Admission.broken(format!(
            "{} gates were stored that the webhooks deny or complete",
            evidence.admitted
        )));
    }
    for life in evidence.lives.iter().filter(|life| life.panicked) {
        let log = life.log.as_deref().unwrap_or_default();
        broken.push(Claim::NoPanic.broken(format!("process {} panicked:\n{log}", life.pid)));
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Story, claims_of};
    use super::*;

    #[test]
    fn facts_that_stay_on_an_object_are_found() {
        let story = Story::complete().with_record_at_rest();
        assert_eq!(claims_of(&story), [Claim::NoOrphans]);
    }

    #[test]
    fn without_records_an_object_must_still_be_held() {
        let mut story = Story::without_records();
        for object in story.evidence.widgets.values_mut() {
            object.held = false;
        }
        assert_eq!(claims_of(&story), [Claim::NoOrphans]);
    }

    #[test]
    fn configurations_memory_admission_and_panics_are_found() {
        let mut story = Story::complete();
        story
            .evidence
            .left_behind
            .push("a configuration".to_owned());
        assert_eq!(claims_of(&story), [Claim::NoOrphans]);

        let story = Story::complete().with_growth();
        assert_eq!(claims_of(&story), [Claim::Footprint]);

        let mut story = Story::complete();
        story.evidence.admitted = 1;
        assert_eq!(claims_of(&story), [Claim::Admission]);

        let mut story = Story::complete();
        story.evidence.lives[0].panicked = true;
        assert_eq!(claims_of(&story), [Claim::NoPanic]);
    }
}
