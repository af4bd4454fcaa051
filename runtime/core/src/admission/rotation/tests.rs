//! The rotation of certificates, step by step.

use proptest::prelude::*;

use super::*;

const DAY: u64 = 24 * 3600;

fn at(seconds: u64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
}

fn policy() -> RotationPolicy {
    RotationPolicy {
        authority_lifetime: Duration::from_secs(300 * DAY),
        leaf_lifetime: Duration::from_secs(30 * DAY),
        spread: Duration::from_secs(100),
    }
}

/// The certificates after a step, as the runtime makes them.
fn done(
    keys: Option<RotationKeys>,
    step: RotationStep,
    policy: &RotationPolicy,
    now: Timestamp,
) -> RotationKeys {
    let validity = |lifetime| Validity {
        from: now,
        until: after(now, lifetime),
    };
    let authority = validity(policy.authority_lifetime);
    let leaf = |authority: Validity| Validity {
        from: now,
        until: after(now, policy.leaf_lifetime).min(authority.until),
    };
    let fresh = RotationKeys {
        authority,
        leaf: leaf(authority),
        covers_hosts: true,
        next_published: None,
        previous_retired: None,
    };
    let Some(keys) = keys else { return fresh };
    match step {
        RotationStep::Create => fresh,
        RotationStep::Renew => RotationKeys {
            leaf: leaf(keys.authority),
            covers_hosts: true,
            ..keys
        },
        RotationStep::Publish => RotationKeys {
            next_published: Some(now),
            ..keys
        },
        RotationStep::Switch => RotationKeys {
            previous_retired: Some(now),
            ..fresh
        },
        RotationStep::Forget => RotationKeys {
            previous_retired: None,
            ..keys
        },
        RotationStep::Wait(_) => keys,
    }
}

#[test]
fn an_authority_is_published_before_it_signs_and_dropped_afterwards() {
    let policy = policy();
    let mut now = at(0);
    let mut keys = None;
    let mut steps = Vec::new();
    while steps.last() != Some(&RotationStep::Forget) {
        match next(keys.as_ref(), &policy, now) {
            RotationStep::Wait(until) => {
                assert!(until > now);
                now = until;
            }
            step => {
                steps.push(step);
                keys = Some(done(keys, step, &policy, now));
            }
        }
    }
    let renewals = steps
        .extract_if(.., |step| *step == RotationStep::Renew)
        .count();
    assert_eq!(renewals, 10, "every 20 of the first 200 days");
    assert_eq!(
        steps,
        [
            RotationStep::Create,
            RotationStep::Publish,
            RotationStep::Switch,
            RotationStep::Forget
        ]
    );
}

#[test]
fn a_certificate_that_does_not_cover_the_hosts_is_renewed_at_once() {
    let policy = policy();
    let keys = done(None, RotationStep::Create, &policy, at(0));
    let keys = RotationKeys {
        covers_hosts: false,
        ..keys
    };
    assert_eq!(next(Some(&keys), &policy, at(1)), RotationStep::Renew);
}

#[test]
fn expired_certificates_are_created_again() {
    let policy = policy();
    let keys = done(None, RotationStep::Create, &policy, at(0));
    assert_eq!(
        next(Some(&keys), &policy, at(301 * DAY)),
        RotationStep::Create
    );
    assert_eq!(next(None, &policy, at(0)), RotationStep::Create);
}

proptest! {
    /// Replicas check at random times, and do the step that is due. A client trusts the authorities
    /// that were published `spread` ago, and replicas serve the certificate of `spread` ago.
    #[test]
    fn clients_always_trust_the_served_certificate(pauses in prop::collection::vec(1u64..2 * DAY, 1..800)) {
        let policy = policy();
        let mut now = at(0);
        let mut keys: Option<RotationKeys> = None;
        for pause in pauses {
            // Each step that is due, one after the other.
            for _ in 0..4 {
                let step = next(keys.as_ref(), &policy, now);
                if let (RotationStep::Switch, Some(keys)) = (step, keys) {
                    let published = keys.next_published.expect("only a published one signs");
                    prop_assert!(elapsed(published, now) >= policy.spread);
                }
                if let (RotationStep::Forget, Some(keys)) = (step, keys) {
                    let retired = keys.previous_retired.expect("only a retired one is forgotten");
                    prop_assert!(elapsed(retired, now) >= policy.spread);
                }
                if let Some(keys) = keys {
                    prop_assert!(step != RotationStep::Create || now >= keys.authority.until);
                }
                keys = Some(done(keys, step, &policy, now));
            }
            let keys = keys.expect("made in the first step");
            prop_assert!(now < keys.leaf.until, "a leaf is renewed in time");
            now = after(now, Duration::from_secs(pause));
        }
    }
}
