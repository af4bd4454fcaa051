//! The life of certificates, step by step.

use proptest::prelude::*;

use super::*;

const DAY: u64 = 24 * 3600;

fn at(seconds: u64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
}

fn policy() -> Policy {
    Policy {
        authority_lifetime: Duration::from_secs(300 * DAY),
        leaf_lifetime: Duration::from_secs(30 * DAY),
        spread: Duration::from_secs(100),
    }
}

/// What a step makes of the keys, as the runtime does it.
fn done(keys: Option<Keys>, step: Step, policy: &Policy, now: Timestamp) -> Keys {
    let validity = |lifetime| Validity {
        from: now,
        until: after(now, lifetime),
    };
    let authority = validity(policy.authority_lifetime);
    let leaf = |authority: Validity| Validity {
        from: now,
        until: after(now, policy.leaf_lifetime).min(authority.until),
    };
    let fresh = Keys {
        authority,
        leaf: leaf(authority),
        covers_hosts: true,
        next_published: None,
        previous_retired: None,
    };
    let Some(keys) = keys else { return fresh };
    match step {
        Step::Create => fresh,
        Step::Renew => Keys {
            leaf: leaf(keys.authority),
            covers_hosts: true,
            ..keys
        },
        Step::Publish => Keys {
            next_published: Some(now),
            ..keys
        },
        Step::Switch => Keys {
            previous_retired: Some(now),
            ..fresh
        },
        Step::Forget => Keys {
            previous_retired: None,
            ..keys
        },
        Step::Wait(_) => keys,
    }
}

#[test]
fn an_authority_is_published_before_it_signs_and_forgotten_after_that() {
    let policy = policy();
    let mut now = at(0);
    let mut keys = None;
    let mut steps = Vec::new();
    while steps.last() != Some(&Step::Forget) {
        match next(keys.as_ref(), &policy, now) {
            Step::Wait(until) => {
                assert!(until > now);
                now = until;
            }
            step => {
                steps.push(step);
                keys = Some(done(keys, step, &policy, now));
            }
        }
    }
    let renewals = steps.extract_if(.., |step| *step == Step::Renew).count();
    assert_eq!(renewals, 10, "every 20 of the first 200 days");
    assert_eq!(
        steps,
        [Step::Create, Step::Publish, Step::Switch, Step::Forget]
    );
}

#[test]
fn hosts_that_are_not_covered_need_another_certificate_at_once() {
    let policy = policy();
    let keys = done(None, Step::Create, &policy, at(0));
    let keys = Keys {
        covers_hosts: false,
        ..keys
    };
    assert_eq!(next(Some(&keys), &policy, at(1)), Step::Renew);
}

#[test]
fn what_is_over_is_made_anew() {
    let policy = policy();
    let keys = done(None, Step::Create, &policy, at(0));
    assert_eq!(next(Some(&keys), &policy, at(301 * DAY)), Step::Create);
    assert_eq!(next(None, &policy, at(0)), Step::Create);
}

proptest! {
    /// Replicas look at random times; whoever looks does the step that is due. A client trusts
    /// what was published `spread` ago, and replicas serve what was there `spread` ago.
    #[test]
    fn nobody_ever_meets_a_stranger(pauses in prop::collection::vec(1u64..2 * DAY, 1..800)) {
        let policy = policy();
        let mut now = at(0);
        let mut keys: Option<Keys> = None;
        for pause in pauses {
            // Each step that is due, one after the other.
            for _ in 0..4 {
                let step = next(keys.as_ref(), &policy, now);
                if let (Step::Switch, Some(keys)) = (step, keys) {
                    let published = keys.next_published.expect("only a published one signs");
                    prop_assert!(elapsed(published, now) >= policy.spread);
                }
                if let (Step::Forget, Some(keys)) = (step, keys) {
                    let retired = keys.previous_retired.expect("only a retired one is forgotten");
                    prop_assert!(elapsed(retired, now) >= policy.spread);
                }
                if let Some(keys) = keys {
                    prop_assert!(step != Step::Create || now >= keys.authority.until);
                }
                keys = Some(done(keys, step, &policy, now));
            }
            let keys = keys.expect("made in the first step");
            prop_assert!(now < keys.leaf.until, "a leaf is renewed in time");
            now = after(now, Duration::from_secs(pause));
        }
    }
}
