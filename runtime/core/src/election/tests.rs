//! Replicas against a store that answers late or not at all, with pauses and wrong clocks.

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
fn a_lease_that_is_given_back_is_taken_at_once() {
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
fn whoever_sees_another_holder_is_none_any_more() {
    let mut me = Candidate::new("me".to_owned(), LeaseTimings::default());
    me.granted(lease("me", 1), secs(0), secs(0));
    me.observe(Some(lease("other", 2)), secs(1));
    assert_eq!(me.holds_until(secs(1)), None);
    assert_eq!(me.other_holder(), Some("other"));
}

#[test]
fn terms_that_cannot_work_are_refused() {
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

/// What happens to one request, or to a replica before its next step, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Fate {
    there: u64,
    back: u64,
    lost_there: bool,
    lost_back: bool,
    stopped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
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

struct World {
    replicas: Vec<(Candidate, u64)>,
    holder: Option<usize>,
    version: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    asleep: Vec<u64>,
    fates: Vec<Fate>,
    next_fate: usize,
    reigns: Vec<(usize, u64)>,
}

impl World {
    fn new(offsets: &[u64], fates: Vec<Fate>) -> Self {
        let replica = |(number, offset): (usize, &u64)| {
            (
                Candidate::new(number.to_string(), LeaseTimings::default()),
                *offset,
            )
        };
        let mut world = Self {
            replicas: offsets.iter().enumerate().map(replica).collect(),
            holder: None,
            version: 0,
            agenda: BinaryHeap::new(),
            order: 0,
            asleep: vec![0; offsets.len()],
            fates,
            next_fate: 0,
            reigns: Vec::new(),
        };
        for replica in 0..offsets.len() {
            world.plan(0, Event::Think(replica));
        }
        world
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.agenda.push(Reverse((at, self.order, event)));
    }

    fn fate(&mut self) -> Fate {
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
            let event = Event::Arrive {
                replica,
                sent: now,
                version,
                read,
            };
            self.plan(now + fate.there, event);
        }
        self.asleep[replica] = now + fate.stopped;
        self.plan(now + fate.stopped + 300, Event::Think(replica));
    }

    fn happen(&mut self, now: u64, event: Event) {
        match event {
            Event::Think(replica) if self.asleep[replica] > now => {}
            Event::Think(replica) => {
                let uptime = self.uptime(replica, now);
                match self.replicas[replica].0.step(uptime) {
                    ElectionStep::Acquire | ElectionStep::Renew => self.send(replica, now, false),
                    // A replica that waits looks at the store now and then.
                    ElectionStep::Wait(_) => self.send(replica, now, true),
                }
            }
            Event::Arrive {
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
                        Event::Answer {
                            replica,
                            sent,
                            accepted,
                            read,
                        },
                    );
                }
            }
            Event::Answer {
                replica,
                sent,
                accepted,
                read,
            } => {
                // Whoever is stopped hears it when it goes on.
                if self.asleep[replica] > now {
                    let later = self.asleep[replica];
                    return self.plan(
                        later,
                        Event::Answer {
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
                        self.reigns.push((replica, now));
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

fn fate() -> impl Strategy<Value = Fate> {
    let stop = prop_oneof![8 => Just(0_u64), 1 => 1_000_u64..30_000];
    (0_u64..4_000, 0_u64..4_000, 0_u8..10, 0_u8..10, stop).prop_map(
        |(there, back, lost_there, lost_back, stopped)| Fate {
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

    /// However late, lost and stopped: never do two replicas hold the lease at the same time.
    #[test]
    fn no_two_replicas_hold_the_lease(
        offsets in prop::collection::vec(0_u64..1_000_000, 2..4),
        fates in prop::collection::vec(fate(), 20..60),
    ) {
        let mut world = World::new(&offsets, fates);
        let mut now = 0;
        while let Some(Reverse((at, _, event))) = world.agenda.pop() {
            if at > 300_000 {
                break;
            }
            for moment in [at.saturating_sub(1).max(now), at] {
                let holding = world.holding(moment);
                prop_assert!(holding.len() <= 1, "{holding:?} at {moment} ms");
            }
            now = at;
            world.happen(at, event);
            prop_assert!(world.holding(at).len() <= 1, "at {at} ms");
        }
    }

    /// Where requests get through, somebody holds the lease soon and keeps it.
    #[test]
    fn a_quiet_world_has_one_lasting_leader(offsets in prop::collection::vec(0_u64..1_000_000, 1..4)) {
        let calm = Fate { there: 5, back: 5, lost_there: false, lost_back: false, stopped: 0 };
        let mut world = World::new(&offsets, vec![calm]);
        while let Some(Reverse((at, _, event))) = world.agenda.pop() {
            if at > 100_000 {
                break;
            }
            world.happen(at, event);
            prop_assert!(at < 1_000 || world.holding(at).len() == 1, "at {at} ms");
        }
        let leader = world.reigns[0].0;
        prop_assert!(world.reigns.iter().all(|(replica, _)| *replica == leader));
    }
}
