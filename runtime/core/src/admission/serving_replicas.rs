//! The replicas of an operator that serve webhooks; the last one removes the configuration.
//!
//! Each replica renews a heartbeat on a shared object. Clocks of machines differ, so the value of a
//! heartbeat means nothing; a replica that observes a change of it knows that its owner is alive.

use std::{collections::BTreeMap, time::Duration};

/// The other replicas, as one replica observes them.
#[derive(Clone, Debug)]
pub struct ServingReplicas {
    name: String,
    lifetime: Duration,
    others: BTreeMap<String, ReplicaHeartbeat>,
}

/// The last heartbeat of a replica.
#[derive(Clone, Debug)]
struct ReplicaHeartbeat {
    value: String,
    /// On the clock of this process, from its start.
    at: Duration,
}

impl ServingReplicas {
    /// A replica with this name, in a group whose members renew their heartbeats within `lifetime`.
    #[must_use]
    pub fn new(name: impl Into<String>, lifetime: Duration) -> Self {
        Self {
            name: name.into(),
            lifetime,
            others: BTreeMap::new(),
        }
    }

    /// The name of this replica.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Records the heartbeats as they are now; `clock` is the time since the process started.
    pub fn observe(&mut self, heartbeats: &BTreeMap<String, String>, clock: Duration) {
        self.others.retain(|name, _| heartbeats.contains_key(name));
        for (name, value) in heartbeats {
            if *name == self.name {
                continue;
            }
            let known = self
                .others
                .get(name)
                .is_some_and(|heartbeat| heartbeat.value == *value);
            if !known {
                let value = value.clone();
                self.others
                    .insert(name.clone(), ReplicaHeartbeat { value, at: clock });
            }
        }
    }

    /// The replicas that no longer renew their heartbeats.
    #[must_use]
    pub fn dead(&self, clock: Duration) -> Vec<&str> {
        self.others
            .iter()
            .filter(|(_, heartbeat)| !self.is_fresh(heartbeat, clock))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// Whether this replica is the only one alive.
    #[must_use]
    pub fn is_last(&self, clock: Duration) -> bool {
        !self
            .others
            .values()
            .any(|heartbeat| self.is_fresh(heartbeat, clock))
    }

    fn is_fresh(&self, heartbeat: &ReplicaHeartbeat, clock: Duration) -> bool {
        clock.saturating_sub(heartbeat.at) < self.lifetime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeats<const N: usize>(heartbeats: [(&str, &str); N]) -> BTreeMap<String, String> {
        heartbeats
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_replica_is_alive_as_long_as_its_heartbeat_changes() {
        let mut replicas = ServingReplicas::new("a", seconds(10));
        assert!(replicas.is_last(seconds(0)));
        replicas.observe(&heartbeats([("a", "1"), ("b", "1")]), seconds(1));
        assert!(!replicas.is_last(seconds(2)));
        replicas.observe(&heartbeats([("a", "2"), ("b", "2")]), seconds(9));
        assert!(!replicas.is_last(seconds(18)));
        replicas.observe(&heartbeats([("a", "3"), ("b", "2")]), seconds(18));
        assert!(replicas.is_last(seconds(19)));
        assert_eq!(replicas.dead(seconds(19)), ["b"]);
    }

    #[test]
    fn a_removed_replica_is_dropped_and_a_new_one_is_alive() {
        let mut replicas = ServingReplicas::new("a", seconds(10));
        replicas.observe(&heartbeats([("b", "1")]), seconds(100));
        assert!(!replicas.is_last(seconds(100)));
        replicas.observe(&heartbeats([]), seconds(101));
        assert!(replicas.is_last(seconds(101)));
    }
}
