//! Peering: decides whether an operator runs or pauses because of other operators.
//!
//! Each operator keeps a record of itself in the status of a shared object, and renews it. The
//! records have Kopf's form, so operators of both kinds can share a peering object.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::time::{self, ClockReading};

/// The priority of an operator on a developer's machine.
pub const DEV_PRIORITY: i64 = 666;

/// The lifetime of a record that names none.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);

/// A longer lifetime counts as this one. Any client may write records, and clocks cannot express
/// every number of seconds.
pub const LONGEST_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The record of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its identity.
    pub identity: String,
    /// The operator with the highest priority runs.
    pub priority: i64,
    /// The time for which the record is valid without renewal.
    pub lifetime: Duration,
    /// The time of the last renewal, by the clock of its owner.
    pub lastseen: Timestamp,
}

/// The operator for which the decision is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPeer {
    /// Its identity.
    pub identity: String,
    /// The operator with the highest priority runs.
    pub priority: i64,
    /// The rule for operators of the same priority.
    pub ties: Ties,
}

/// The rule for operators of the same priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// All of them pause, as Kopf does.
    #[default]
    Pause,
    /// The one whose identity sorts first runs, the others pause.
    FirstIdentity,
}

/// The records of one peering object, with the times at which they were observed to change.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    records: BTreeMap<String, PeerObservation>,
    observed_once: bool,
}

#[derive(Clone, Debug)]
struct PeerObservation {
    peer: Peer,
    /// The time at which the record was observed first, on our own clock.
    since: Duration,
    /// Whether we observed its renewal, so that its operator was alive then.
    renewed: bool,
}

/// The decision for an operator, by the records of a peering object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeeringDecision {
    /// Whether it runs or pauses.
    pub action: PeeringAction,
    /// The number of other operators that are alive.
    pub alive: usize,
    /// The identities of expired records, which any operator may remove.
    pub dead: Vec<String>,
    /// The time until the next decision, if no record changes before.
    pub recheck: Option<Duration>,
}

/// The action of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeeringAction {
    /// It runs.
    Run,
    /// It pauses: these have a higher priority, or come first among equals.
    PauseForHigher(Vec<Peer>),
    /// It pauses: these have the same priority.
    PauseForEqual(Vec<Peer>),
}

// === impl Peer ===

impl Peer {
    /// Reads a record, with Kopf's defaults for missing and invalid values.
    #[must_use]
    pub fn read(identity: &str, record: &Map<String, Value>, now: Timestamp) -> Self {
        let seconds = |value: &Value| match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let lifetime = record.get("lifetime").and_then(seconds);
        let lastseen = record.get("lastseen").and_then(Value::as_str);
        Self {
            identity: identity.to_owned(),
            priority: record.get("priority").and_then(Value::as_i64).unwrap_or(0),
            lifetime: lifetime.map_or(DEFAULT_LIFETIME, |seconds| {
                let longest = match planted!(PeerLifetimeUnlimited) {
                    true => Duration::MAX,
                    false => LONGEST_LIFETIME,
                };
                Duration::try_from_secs_f64(seconds.trunc().max(0.0))
                    .unwrap_or(longest)
                    .min(longest)
            }),
            lastseen: lastseen.and_then(time::parse).unwrap_or(now),
        }
    }

    /// The record, as Kopf writes it.
    #[must_use]
    pub fn record(&self) -> Value {
        let whole = self.lastseen.as_microsecond() % 1_000_000 == 0;
        let form = if whole {
            "%Y-%m-%dT%H:%M:%S+00:00"
        } else {
            "%Y-%m-%dT%H:%M:%S%.6f+00:00"
        };
        json!({
            "priority": self.priority,
            "lifetime": self.lifetime.as_secs(),
            "lastseen": self.lastseen.strftime(form).to_string(),
        })
    }

    /// The patch of the peering object that renews the record of this operator.
    #[must_use]
    pub fn announcement(&self) -> Value {
        json!({"status": {(&self.identity): self.record()}})
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (priority {})", self.identity, self.priority)
    }
}

/// The patch of the peering object that removes the records of these operators.
#[must_use]
pub fn removal<'a>(identities: impl IntoIterator<Item = &'a str>) -> Value {
    let gone: Map<String, Value> = identities
        .into_iter()
        .map(|identity| (identity.to_owned(), Value::Null))
        .collect();
    json!({"status": gone})
}

/// The pause between two renewals of a record: its lifetime less a random `leeway`, so that many
/// operators do not renew at once, but at least a second.
#[must_use]
pub fn keepalive(lifetime: Duration, leeway: Duration) -> Duration {
    let shortest = Duration::from_secs(1);
    lifetime
        .saturating_sub(leeway)
        .clamp(shortest, LONGEST_LIFETIME)
}

// === impl Peers ===

impl Peers {
    /// Records the object as it is now.
    pub fn observe(&mut self, object: &Value, now: ClockReading) {
        let status = object.get("status").and_then(Value::as_object);
        let present: BTreeMap<&String, Peer> = status
            .into_iter()
            .flatten()
            .filter_map(|(identity, record)| {
                let record = record.as_object()?;
                Some((identity, Peer::read(identity, record, now.wall)))
            })
            .collect();
        self.records
            .retain(|identity, _| present.contains_key(identity));
        for (identity, peer) in present {
            match self.records.get_mut(identity) {
                Some(known) if known.peer == peer => {}
                Some(known) => {
                    *known = PeerObservation {
                        peer,
                        since: now.uptime,
                        renewed: true,
                    };
                }
                None => {
                    let observation = PeerObservation {
                        peer,
                        since: now.uptime,
                        renewed: self.observed_once,
                    };
                    self.records.insert(identity.clone(), observation);
                }
            }
        }
        self.observed_once = true;
    }

    /// Removes all records: the object was deleted.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Decides whether `own` runs.
    #[must_use]
    pub fn decide(&self, own: &OwnPeer, now: ClockReading) -> PeeringDecision {
        let others = || {
            let records = self.records.values();
            records.filter(|it| it.peer.identity != own.identity)
        };
        let alive = || others().filter(|it| !it.is_dead(now));
        let higher: Vec<&PeerObservation> = alive()
            .filter(|it| match it.peer.priority.cmp(&own.priority) {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Equal => {
                    own.ties == Ties::FirstIdentity && it.peer.identity < own.identity
                }
            })
            .collect();
        let equal: Vec<&PeerObservation> = alive()
            .filter(|it| own.ties == Ties::Pause && it.peer.priority == own.priority)
            .collect();
        let recheck = higher
            .iter()
            .chain(&equal)
            .map(|it| it.time_left(now))
            .min();
        let peers =
            |list: Vec<&PeerObservation>| list.into_iter().map(|it| it.peer.clone()).collect();
        let dead = others().filter(|it| it.is_dead(now));
        let dead = dead.map(|it| it.peer.identity.clone()).collect();
        let action = if !higher.is_empty() {
            PeeringAction::PauseForHigher(peers(higher))
        } else if !equal.is_empty() {
            PeeringAction::PauseForEqual(peers(equal))
        } else {
            PeeringAction::Run
        };
        PeeringDecision {
            action,
            alive: alive().count(),
            dead,
            recheck,
        }
    }
}

impl PeerObservation {
    fn is_dead(&self, now: ClockReading) -> bool {
        self.time_left(now).is_zero()
    }

    /// The time for which the record is still valid.
    ///
    /// A record whose renewal we observed is valid for its lifetime from then on, by our own clock.
    /// For a record of the first observation only the time stamp of its owner is known; it is not
    /// valid for longer than its lifetime either.
    fn time_left(&self, now: ClockReading) -> Duration {
        let watched = now.uptime.saturating_sub(self.since);
        let left = self.peer.lifetime.saturating_sub(watched);
        if self.renewed {
            return left;
        }
        let age = time::elapsed(self.peer.lastseen, now.wall);
        left.min(self.peer.lifetime.saturating_sub(age))
    }
}

#[cfg(test)]
mod tests;
