//! Replicas and a server that responds late or not at all, with pauses and different clocks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;

fn lease(holder: &str, version: u64) -> Lease {
    Lease {
        holder: Some(holder.to_owned()).filter(|it| !it.is_empty()),
        duration: Duration::from_secs(15),
        version: version.to_string(),
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_free_lease_is_taken_and_renewed() {
    let mut me = Candidate::new("me".to_owned(), LeaseTimings::default());
    me.observe(None, secs(0));
    assert_eq!(me.step(secs(0)), ElectionStep::Acquire);
    me.granted(lease("me", 1), secs(0), secs(1));
    assert_eq!(me.holds_until(secs(1)), Some(secs(10)));
    assert_eq!(me.step(secs(1)), ElectionStep::Wait(secs(1)));
    assert_eq!(me.step(secs(2)), ElectionStep::Renew);
    me.refused(secs(3));
    assert_eq!(me.step(secs(3)), ElectionStep::Wait(secs(2)));
    assert_eq!(me.step(secs(5)), ElectionStep::Renew);
    assert_eq!(me.holds_until(secs(10)), None, "it counts from the request");
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut me = Candidate::new("me".to_owned(), LeaseTimings::default());
    me.observe(Some(lease("other", 1)), secs(5));
    assert_eq!(me.step(secs(5)), ElectionStep::Wait(secs(15)));
    me.observe(Some(lease("", 2)), secs(6));
    assert_eq!(me.step(secs(6)), ElectionStep::Acquire);
}

#[test]
fn a_lease_is_free_after_its_duration_without_a_change() {
    let mut me = Candidate::new("me".to_owned(), LeaseTimings::default());
    me.observe(Some(lease("other", 1)), secs(5));
    me.observe(Some(lease("other", 1)), secs(15));
    assert_eq!(me.step(secs(15)), ElectionStep::Wait(secs(5)));
    me.observe(Some(lease("other", 2)), secs(19));
    assert_eq!(me.step(secs(20)), ElectionStep::Wait(secs(14)));
    assert_eq!(me.step(secs(34)), ElectionStep::Acquire);
}

#[test]
fn a_replica_that_observes_another_holder_no_longer_holds_the_lease() {
    let mut me = Candidate::new("me".to_owned(), LeaseTimings::default());
    me.granted(lease("me", 1), secs(0), secs(0));
    me.observe(Some(lease("other", 2)), secs(1));
    assert_eq!(me.holds_until(secs(1)), None);
    assert_eq!(me.other_holder(), Some("other"));
}

#[test]
fn terms_that_are_invalid_are_rejected() {
    let timings = |duration, renew_deadline, retry_period| LeaseTimings {
        duration: Duration::from_millis(duration),
        renew_deadline: Duration::from_millis(renew_deadline),
        retry_period: Duration::from_millis(retry_period),
    };
    assert_eq!(LeaseTimings::default().check(), Ok(()));
    assert_eq!(
        timings(3000, 3000, 500).check(),
        Err(Error::DeadlineTooLong)
    );
    assert_eq!(timings(3000, 2000, 2000).check(), Err(Error::RetryTooLong));
    assert_eq!(timings(3000, 2000, 0).check(), Err(Error::RetryTooLong));
    assert_eq!(
        timings(2500, 2000, 500).check(),
        Err(Error::NotWholeSeconds)
    );
}

/// The delays and losses of one request, and a pause of its replica, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct RequestFate {
    there: u64,
    back: u64,
    lost_there: bool,
    lost_back: bool,
    stopped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedEvent {
    Think(usize),
    Arrive {
        replica: usize,
        sent: u64,
        version: u64,
        read: bool,
    },
    Answer {
        replica: usize,
        sent: u64,
        accepted: bool,
        read: bool,
    },
}

struct ElectionSimulation {
    replicas: Vec<(Candidate, u64)>,
    holder: Option<usize>,
    version: u64,
    events: BinaryHeap<Reverse<(u64, u64, SimulatedEvent)>>,
    order: u64,
    asleep: Vec<u64>,
    fates: Vec<RequestFate>,
    next_fate: usize,
    grants: Vec<(usize, u64)>,
}

impl ElectionSimulation {
    fn new(offsets: &[u64], fates: Vec<RequestFate>) -> Self {
        let replica = |(number, offset): (usize, &u64)| {
            (
                Candidate::new(number.to_string(), LeaseTimings::default()),
                *offset,
            )
        };
        let mut simulation = Self {
            replicas: offsets.iter().enumerate().map(replica).collect(),
            holder: None,
            version: 0,
            events: BinaryHeap::new(),
            order: 0,
            asleep: vec![0; offsets.len()],
            fates,
            next_fate: 0,
            grants: Vec::new(),
        };
        for replica in 0..offsets.len() {
            simulation.plan(0, SimulatedEvent::Think(replica));
        }
        simulation
    }

    fn plan(&mut self, at: u64, event: SimulatedEvent) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn fate(&mut self) -> RequestFate {
        self.next_fate += 1;
        self.fates[self.next_fate % self.fates.len()]
    }

    /// The replica's own clock, which began at another time.
    fn uptime(&self, replica: usize, now: u64) -> Duration {
        Duration::from_millis(now + self.replicas[replica].1)
    }

    fn stored(&self) -> Option<Lease> {
        let holder = self.holder?.to_string();
        Some(lease(&holder, self.version))
    }

    fn holding(&self, now: u64) -> Vec<usize> {
        (0..self.replicas.len())
            .filter(|&it| {
                self.replicas[it]
                    .0
                    .holds_until(self.uptime(it, now))
                    .is_some()
            })
            .collect()
    }

    fn send(&mut self, replica: usize, now: u64, read: bool) {
        let fate = self.fate();
        let known = self.replicas[replica].0.version();
        let version = known.and_then(|it| it.parse().ok()).unwrap_or(0);
        if !fate.lost_there {
            let event = SimulatedEvent::Arrive {
                replica,
                sent: now,
                version,
                read,
            };
            self.plan(now + fate.there, event);
        }
        self.asleep[replica] = now + fate.stopped;
        self.plan(now + fate.stopped + 300, SimulatedEvent::Think(replica));
    }

    fn happen(&mut self, now: u64, event: SimulatedEvent) {
        match event {
            SimulatedEvent::Think(replica) if self.asleep[replica] > now => {}
            SimulatedEvent::Think(replica) => {
                let uptime = self.uptime(replica, now);
                match self.replicas[replica].0.step(uptime) {
                    ElectionStep::Acquire | ElectionStep::Renew => self.send(replica, now, false),
                    // A waiting replica reads the Lease from time to time.
                    ElectionStep::Wait(_) => self.send(replica, now, true),
                }
            }
            SimulatedEvent::Arrive {
                replica,
                sent,
                version,
                read,
            } => {
                let accepted = !read && version == self.version;
                if accepted {
                    self.holder = Some(replica);
                    self.version += 1;
                }
                let fate = self.fate();
                if !fate.lost_back {
                    self.plan(
                        now + fate.back,
                        SimulatedEvent::Answer {
                            replica,
                            sent,
                            accepted,
                            read,
                        },
                    );
                }
            }
            SimulatedEvent::Answer {
                replica,
                sent,
                accepted,
                read,
            } => {
                // A stopped replica gets the response when it continues.
                if self.asleep[replica] > now {
                    let later = self.asleep[replica];
                    return self.plan(
                        later,
                        SimulatedEvent::Answer {
                            replica,
                            sent,
                            accepted,
                            read,
                        },
                    );
                }
                let (sent, uptime) = (self.uptime(replica, sent), self.uptime(replica, now));
                let stored = self.stored();
                let candidate = &mut self.replicas[replica].0;
                match stored {
                    Some(lease)
                        if accepted && lease.holder.as_deref() == Some(candidate.identity()) =>
                    {
                        candidate.granted(lease, sent, uptime);
                        self.grants.push((replica, now));
                    }
                    stored => {
                        candidate.observe(stored, uptime);
                        if !read {
                            candidate.refused(uptime);
                        }
                    }
                }
            }
        }
    }
}

fn fate() -> impl Strategy<Value = RequestFate> {
    let stop = prop_oneof![8 => Just(0_u64), 1 => 1_000_u64..30_000];
    (0_u64..4_000, 0_u64..4_000, 0_u8..10, 0_u8..10, stop).prop_map(
        |(there, back, lost_there, lost_back, stopped)| RequestFate {
            there,
            back,
            lost_there: lost_there == 0,
            lost_back: lost_back == 0,
            stopped,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With any delays, losses and pauses, two replicas never hold the lease at the same time.
    #[test]
    fn no_two_replicas_hold_the_lease(
        offsets in prop::collection::vec(0_u64..1_000_000, 2..4),
        fates in prop::collection::vec(fate(), 20..60),
    ) {
        let mut simulation = ElectionSimulation::new(&offsets, fates);
        let mut now = 0;
        while let Some(Reverse((at, _, event))) = simulation.events.pop() {
            if at > 300_000 {
                break;
            }
            for moment in [at.saturating_sub(1).max(now), at] {
                let holding = simulation.holding(moment);
                prop_assert!(holding.len() <= 1, "{holding:?} at {moment} ms");
            }
            now = at;
            simulation.happen(at, event);
            prop_assert!(simulation.holding(at).len() <= 1, "at {at} ms");
        }
    }

    /// Without losses, one replica holds the lease soon and keeps it.
    #[test]
    fn without_losses_one_leader_stays(offsets in prop::collection::vec(0_u64..1_000_000, 1..4)) {
        let calm = RequestFate { there: 5, back: 5, lost_there: false, lost_back: false, stopped: 0 };
        let mut simulation = ElectionSimulation::new(&offsets, vec![calm]);
        while let Some(Reverse((at, _, event))) = simulation.events.pop() {
            if at > 100_000 {
                break;
            }
            simulation.happen(at, event);
            prop_assert!(at < 1_000 || simulation.holding(at).len() == 1, "at {at} ms");
        }
        let leader = simulation.grants[0].0;
        prop_assert!(simulation.grants.iter().all(|(replica, _)| *replica == leader));
    }
}
