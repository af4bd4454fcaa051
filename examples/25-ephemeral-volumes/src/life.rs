//! Decides what follows in the life of a claim. No clock, no requests.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The times of one claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimTimes {
    pub created: Timestamp,
    /// The claim exists at least this long.
    pub safe: SignedDuration,
    /// A claim that no Pod has used by then is deleted.
    pub expiry: SignedDuration,
    /// How long the claim remains after its last Pod has ended.
    pub grace: SignedDuration,
}

/// What the Pods of a claim have done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimUse {
    /// No Pod has started.
    Waiting,
    /// A Pod runs.
    Used,
    /// Pods have run, and the last of them has ended by then.
    UnusedSince(Timestamp),
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    Keep(ClaimUse),
    Delete(&'static str),
}

/// The next step for a claim, by the phases of its Pods.
pub fn next_step(
    times: &ClaimTimes,
    before: ClaimUse,
    phases: &[&str],
    now: Timestamp,
) -> NextStep {
    let age = now.duration_since(times.created);
    let has_started = phases
        .iter()
        .any(|phase| !phase.is_empty() && *phase != "Pending");
    // A Pod that is pending may have been restarted by its owner.
    let has_open = phases
        .iter()
        .any(|phase| !matches!(*phase, "Succeeded" | "Failed"));
    let present = match before {
        ClaimUse::Waiting if !has_started => ClaimUse::Waiting,
        _ if has_open => ClaimUse::Used,
        ClaimUse::UnusedSince(time) => ClaimUse::UnusedSince(time),
        ClaimUse::Waiting | ClaimUse::Used => ClaimUse::UnusedSince(now),
    };
    match present {
        ClaimUse::Waiting if age >= times.expiry => NextStep::Delete("no Pod has used the claim"),
        ClaimUse::UnusedSince(time)
            if age >= times.safe && now.duration_since(time) >= times.grace =>
        {
            NextStep::Delete("all Pods of the claim have ended")
        }
        _ => NextStep::Keep(present),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next step at a second after the creation.
    fn at(second: i64, before: ClaimUse, phases: &[&str]) -> NextStep {
        let times = ClaimTimes {
            created: Timestamp::UNIX_EPOCH,
            safe: SignedDuration::from_secs(10),
            expiry: SignedDuration::from_secs(100),
            grace: SignedDuration::from_secs(5),
        };
        next_step(&times, before, phases, time(second))
    }

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small number")
    }

    fn unused(second: i64) -> ClaimUse {
        ClaimUse::UnusedSince(time(second))
    }

    #[test]
    fn a_claim_waits_for_its_first_pod_until_it_expires() {
        let kept = NextStep::Keep(ClaimUse::Waiting);
        assert_eq!(at(50, ClaimUse::Waiting, &[]), kept);
        assert_eq!(at(99, ClaimUse::Waiting, &["Pending"]), kept);
        let deleted = NextStep::Delete("no Pod has used the claim");
        assert_eq!(at(100, ClaimUse::Waiting, &["Pending"]), deleted);
    }

    #[test]
    fn a_used_claim_never_expires_while_a_pod_is_open() {
        let used = NextStep::Keep(ClaimUse::Used);
        assert_eq!(at(1, ClaimUse::Waiting, &["Running"]), used);
        assert_eq!(at(1000, ClaimUse::Used, &["Succeeded", "Running"]), used);
        assert_eq!(at(1000, unused(20), &["Pending"]), used, "started again");
    }

    #[test]
    fn a_claim_is_deleted_a_grace_time_after_its_last_pod_and_not_before_the_safe_time() {
        assert_eq!(
            at(20, ClaimUse::Used, &["Failed"]),
            NextStep::Keep(unused(20))
        );
        assert_eq!(
            at(20, ClaimUse::Used, &[]),
            NextStep::Keep(unused(20)),
            "gone"
        );
        assert_eq!(at(24, unused(20), &[]), NextStep::Keep(unused(20)));
        let deleted = NextStep::Delete("all Pods of the claim have ended");
        assert_eq!(at(25, unused(20), &["Succeeded"]), deleted);
        assert_eq!(at(9, unused(1), &[]), NextStep::Keep(unused(1)), "safe");
        assert_eq!(
            at(2, ClaimUse::Waiting, &["Succeeded"]),
            NextStep::Keep(unused(2)),
            "quick"
        );
    }
}
