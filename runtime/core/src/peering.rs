//! Operators that know of each other: who is alive, and who has to wait for whom.
//!
//! Each operator keeps a record of itself in the status of a shared object, and renews it. The
//! form of the records is Kopf's, so operators of both kinds understand each other.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::time;

/// The priority of an operator on a developer's machine.
pub const DEV_PRIORITY: i64 = 666;

/// How long a record counts that does not say so itself.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);

/// An operator as its record tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who it is.
    pub identity: String,
    /// The higher one goes ahead.
    pub priority: i64,
    /// How long the record counts without being renewed.
    pub lifetime: Duration,
    /// When the record was renewed, by the clock of its owner.
    pub lastseen: Timestamp,
}

/// The operator that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPeer {
    /// Who it is.
    pub identity: String,
    /// The higher one goes ahead.
    pub priority: i64,
    /// What happens among equals.
    pub ties: Ties,
}

/// What happens among operators of the same priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// All of them pause, as Kopf does.
    #[default]
    Pause,
    /// The one whose identity sorts first goes ahead, the others pause.
    FirstIdentity,
}

/// A point in time on both clocks of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// What the clock on the wall says, which other machines may disagree with.
    pub wall: Timestamp,
    /// The time since some fixed moment, which never jumps.
    pub uptime: Duration,
}

/// The records of one peering object, as they were seen to come, change and go.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    records: BTreeMap<String, PeerObservation>,
    observed_once: bool,
}

#[derive(Clone, Debug)]
struct PeerObservation {
    peer: Peer,
    /// Since when the record is as it is, on our own clock.
    since: Duration,
    /// Whether it was renewed before our eyes, so that somebody was alive then.
    renewed: bool,
}

/// What the records of a peering object mean to an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeeringDecision {
    /// Whether it may run.
    pub action: PeeringAction,
    /// How many others are alive.
    pub alive: usize,
    /// Records of operators that are gone, which anybody may remove.
    pub dead: Vec<String>,
    /// When to decide again if nothing changes until then.
    pub recheck: Option<Duration>,
}

/// Whether an operator may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeeringAction {
    /// Nobody else wants to.
    Run,
    /// These go ahead.
    PauseForHigher(Vec<Peer>),
    /// These have the same priority, and nothing decides between them.
    PauseForEqual(Vec<Peer>),
}

// === impl Peer ===

impl Peer {
    /// Reads a record, with Kopf's defaults for what is missing or makes no sense.
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
                Duration::try_from_secs_f64(seconds.trunc().max(0.0)).unwrap_or(Duration::MAX)
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

    /// A patch of the peering object that says this operator is alive.
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

/// A patch of the peering object that removes the records of these operators.
#[must_use]
pub fn removal<'a>(identities: impl IntoIterator<Item = &'a str>) -> Value {
    let gone: Map<String, Value> = identities
        .into_iter()
        .map(|identity| (identity.to_owned(), Value::Null))
        .collect();
    json!({"status": gone})
}

/// The pause between two renewals of a record: short of its lifetime by `leeway`, which is chosen
/// by chance so that many operators do not come at once, but never below a second.
#[must_use]
pub fn keepalive(lifetime: Duration, leeway: Duration) -> Duration {
    let shortest = Duration::from_secs(1);
    lifetime.saturating_sub(leeway).max(shortest)
}

// === impl Peers ===

impl Peers {
    /// Takes in the object as it is now.
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

    /// Forgets everything: the object is gone.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether `own` may run.
    #[must_use]
    pub fn decide(&self, own: &OwnPeer, now: ClockReading) -> PeeringDecision {
        let others = || {
            let records = self.records.values();
            records.filter(|it| it.peer.identity != own.identity)
        };
        let alive = || others().filter(|it| !it.is_dead(now));
        let ahead: Vec<&PeerObservation> = alive()
            .filter(|it| match it.peer.priority.cmp(&own.priority) {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Equal => {
                    own.ties == Ties::FirstIdentity && it.peer.identity < own.identity
                }
            })
            .collect();
        let level: Vec<&PeerObservation> = alive()
            .filter(|it| own.ties == Ties::Pause && it.peer.priority == own.priority)
            .collect();
        let recheck = ahead.iter().chain(&level).map(|it| it.time_left(now)).min();
        let peers =
            |list: Vec<&PeerObservation>| list.into_iter().map(|it| it.peer.clone()).collect();
        let dead = others().filter(|it| it.is_dead(now));
        let dead = dead.map(|it| it.peer.identity.clone()).collect();
        let action = if !ahead.is_empty() {
            PeeringAction::PauseForHigher(peers(ahead))
        } else if !level.is_empty() {
            PeeringAction::PauseForEqual(peers(level))
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

    /// How long the record still counts.
    ///
    /// What was renewed before our eyes counts for its lifetime from then on by our own clock,
    /// whatever the other's says. What was there at the first look has only the other's time
    /// stamp to go by, but does not outlast its lifetime either.
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
