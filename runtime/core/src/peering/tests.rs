//! Records, clocks and priorities: which operators run and which pause.

use proptest::prelude::*;

use super::*;

const START: i64 = 1_600_000_000;

fn at(seconds: u64) -> ClockReading {
    ClockReading {
        wall: Timestamp::from_second(START).expect("valid") + Duration::from_secs(seconds),
        uptime: Duration::from_secs(seconds),
    }
}

fn own(priority: i64) -> OwnPeer {
    OwnPeer {
        identity: "me".to_owned(),
        priority,
        ties: Ties::Pause,
    }
}

fn record(priority: i64, lifetime: u64, lastseen: ClockReading) -> Value {
    let peer = Peer {
        identity: String::new(),
        priority,
        lifetime: Duration::from_secs(lifetime),
        lastseen: lastseen.wall,
    };
    peer.record()
}

fn observed(status: &Value, now: ClockReading) -> Peers {
    let mut peers = Peers::default();
    peers.observe(&json!({"status": status}), now);
    peers
}

#[test]
fn an_absurd_lifetime_counts_as_the_longest_one() {
    for lifetime in [json!("inf"), json!("1e400"), json!(1e20), json!(u64::MAX)] {
        let status = json!({"other": {"priority": 5, "lifetime": lifetime.clone()}});
        let decision = observed(&status, at(0)).decide(&own(0), at(0));
        assert!(matches!(decision.action, PeeringAction::PauseForHigher(_)));
        assert_eq!(decision.recheck, Some(LONGEST_LIFETIME), "{lifetime}");
    }
    assert_eq!(
        keepalive(Duration::MAX, Duration::from_secs(5)),
        LONGEST_LIFETIME
    );
    for lifetime in [json!("-inf"), json!("nan"), json!(-1)] {
        let status = json!({"other": {"priority": 5, "lifetime": lifetime.clone()}});
        let decision = observed(&status, at(0)).decide(&own(0), at(0));
        assert_eq!(decision.action, PeeringAction::Run, "{lifetime}");
    }
}

#[test]
fn records_are_written_as_kopf_writes_them() {
    let mut peer = Peer {
        identity: "me@host/20201231235959/abc".to_owned(),
        priority: 666,
        lifetime: Duration::from_secs(60),
        lastseen: "2020-12-31T23:59:59.123456Z".parse().expect("valid"),
    };
    assert_eq!(
        peer.announcement().to_string(),
        r#"{"status":{"me@host/20201231235959/abc":{"priority":666,"lifetime":60,"lastseen":"2020-12-31T23:59:59.123456+00:00"}}}"#
    );
    peer.lastseen = "2020-12-31T23:59:59Z".parse().expect("valid");
    assert_eq!(peer.record()["lastseen"], "2020-12-31T23:59:59+00:00");
    assert_eq!(
        removal(["a", "b"]).to_string(),
        r#"{"status":{"a":null,"b":null}}"#
    );
}

#[test]
fn records_are_read_with_the_defaults_of_kopf() {
    let now = at(0).wall;
    let read = |record: Value| {
        let record = record.as_object().cloned().unwrap_or_default();
        Peer::read("x", &record, now)
    };
    let bare = read(json!({}));
    assert_eq!((bare.priority, bare.lifetime.as_secs()), (0, 60));
    assert_eq!(bare.lastseen, now);
    let odd =
        read(json!({"priority": "high", "lifetime": "7", "lastseen": "soon", "namespace": 1}));
    assert_eq!((odd.priority, odd.lifetime.as_secs()), (0, 7));
    assert_eq!(odd.lastseen, now);
    assert!(read(json!({"lifetime": -5})).lifetime.is_zero());
}

#[test]
fn a_higher_priority_pauses_us_until_its_record_expires() {
    let peers = observed(
        &json!({"dev": record(666, 60, at(0)), "low": record(-1, 60, at(0))}),
        at(10),
    );
    let decision = peers.decide(&own(0), at(10));
    assert!(
        matches!(&decision.action, PeeringAction::PauseForHigher(them) if them[0].identity == "dev")
    );
    assert_eq!(decision.recheck, Some(Duration::from_secs(50)));
    let later = peers.decide(&own(0), at(60));
    assert_eq!(later.action, PeeringAction::Run);
    assert_eq!(later.dead, ["dev", "low"]);
}

#[test]
fn equal_priorities_pause_unless_identities_decide() {
    let peers = observed(
        &json!({"a": record(0, 60, at(0)), "z": record(0, 60, at(0))}),
        at(0),
    );
    assert!(
        matches!(peers.decide(&own(0), at(0)).action, PeeringAction::PauseForEqual(them) if them.len() == 2)
    );
    let decided = OwnPeer {
        ties: Ties::FirstIdentity,
        ..own(0)
    };
    assert!(matches!(
        peers.decide(&decided, at(0)).action,
        PeeringAction::PauseForHigher(them) if them.len() == 1 && them[0].identity == "a"
    ));
    let first = OwnPeer {
        identity: "A".to_owned(),
        ..decided
    };
    assert_eq!(peers.decide(&first, at(0)).action, PeeringAction::Run);
}

#[test]
fn a_peer_that_renews_is_alive_with_any_clock() {
    let mut peers = observed(&json!({"slow": record(1, 60, at(0))}), at(1000));
    assert_eq!(peers.decide(&own(0), at(1000)).dead, ["slow"]);
    peers.observe(
        &json!({"status": {"slow": record(1, 60, at(50))}}),
        at(1050),
    );
    assert!(matches!(
        peers.decide(&own(0), at(1100)).action,
        PeeringAction::PauseForHigher(_)
    ));
    assert_eq!(peers.decide(&own(0), at(1110)).dead, ["slow"]);
}

#[test]
fn a_record_from_the_future_does_not_outlast_its_lifetime() {
    let peers = observed(&json!({"fast": record(1, 60, at(100_000))}), at(0));
    assert!(matches!(
        peers.decide(&own(0), at(59)).action,
        PeeringAction::PauseForHigher(_)
    ));
    assert_eq!(peers.decide(&own(0), at(60)).action, PeeringAction::Run);
}

#[test]
fn the_interval_of_renewals_is_that_of_kopf() {
    let interval = |lifetime, leeway| {
        keepalive(Duration::from_secs(lifetime), Duration::from_secs(leeway)).as_secs()
    };
    assert_eq!((interval(60, 5), interval(60, 10)), (55, 50));
    assert_eq!((interval(8, 5), interval(5, 10), interval(0, 7)), (3, 1, 1));
}

/// A few operators with different identities.
fn operators() -> impl Strategy<Value = Vec<OwnPeer>> {
    let operator = (-1_i64..2, 0_u8..2).prop_map(|(priority, ties)| (priority, ties == 0));
    prop::collection::vec(operator, 1..6).prop_map(|list| {
        let tie_break = list.iter().all(|(_, ties)| *ties);
        let numbered = list.into_iter().enumerate();
        numbered
            .map(|(number, (priority, _))| OwnPeer {
                identity: format!("operator-{number}"),
                priority,
                ties: if tie_break {
                    Ties::FirstIdentity
                } else {
                    Ties::Pause
                },
            })
            .collect()
    })
}

proptest! {
    /// Of operators that observe all others at the same time, exactly one runs if one alone has the
    /// highest priority or identities decide; none runs if several share it.
    #[test]
    fn at_most_one_of_operators_that_observe_each_other_runs(all in operators(), age in 0_u64..60) {
        let status: Map<String, Value> = all
            .iter()
            .map(|it| (it.identity.clone(), record(it.priority, 60, at(0))))
            .collect();
        let now = at(age);
        let peers = observed(&Value::Object(status), now);
        let running = all.iter().filter(|it| peers.decide(it, now).action == PeeringAction::Run).count();
        let highest = all.iter().map(|it| it.priority).max();
        let sharing = all.iter().filter(|it| Some(it.priority) == highest).count();
        let decided = sharing == 1 || all[0].ties == Ties::FirstIdentity;
        prop_assert_eq!(running, usize::from(decided));
    }

    /// An operator waits for a record no longer than its lifetime after the last observed renewal,
    /// and does not run while it is renewed in time, with any error of the clocks.
    #[test]
    fn a_wrong_clock_neither_blocks_for_ever_nor_lets_two_run(
        offset in -100_000_i64..100_000,
        interval in 1_u64..59,
        renewals in 1_u64..5,
    ) {
        let stamp = |seconds: u64| {
            let shifted = START + offset + i64::try_from(seconds).expect("small");
            ClockReading {
                wall: Timestamp::from_second(shifted).expect("valid"),
                uptime: Duration::from_secs(seconds),
            }
        };
        let mut peers = Peers::default();
        peers.observe(&json!({"status": {"them": record(1, 60, stamp(0))}}), at(0));
        for renewal in 1..=renewals {
            let seconds = renewal * interval;
            if renewal > 1 {
                let action = peers.decide(&own(0), at(seconds)).action;
                prop_assert!(matches!(action, PeeringAction::PauseForHigher(_)), "alive at {}", seconds);
            }
            peers.observe(&json!({"status": {"them": record(1, 60, stamp(seconds))}}), at(seconds));
        }
        let last = renewals * interval;
        prop_assert!(matches!(peers.decide(&own(0), at(last + 59)).action, PeeringAction::PauseForHigher(_)));
        let decision = peers.decide(&own(0), at(last + 60));
        prop_assert_eq!(decision.action, PeeringAction::Run);
        prop_assert_eq!(decision.dead, ["them"]);
    }

    /// The decision changes at the announced time.
    #[test]
    fn a_pause_ends_at_the_announced_time(lifetimes in prop::collection::vec(1_u64..100, 1..4)) {
        let status: Map<String, Value> = lifetimes
            .iter()
            .enumerate()
            .map(|(number, lifetime)| (format!("p{number}"), record(1, *lifetime, at(0))))
            .collect();
        let peers = observed(&Value::Object(status), at(0));
        let mut now = 0;
        let mut rounds = 0;
        while let Some(wait) = peers.decide(&own(0), at(now)).recheck {
            prop_assert!(!wait.is_zero());
            now += wait.as_secs();
            rounds += 1;
            prop_assert!(rounds <= lifetimes.len());
        }
        prop_assert_eq!(Some(now), lifetimes.iter().max().copied());
        prop_assert_eq!(peers.decide(&own(0), at(now)).action, PeeringAction::Run);
    }
}
