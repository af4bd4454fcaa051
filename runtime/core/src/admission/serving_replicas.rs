//! Which replicas of an operator serve webhooks, so that the last one can put out the light.
//!
//! Each replica renews a mark on a shared object. Clocks of machines differ, so a mark says
//! nothing by its value, only by changing: who sees it change knows that its owner was alive.

use std::{collections::BTreeMap, time::Duration};

/// What one replica knows of the others.
#[derive(Clone, Debug)]
pub struct ServingReplicas {
    me: String,
    lifetime: Duration,
    seen: BTreeMap<String, ReplicaMark>,
}

/// The last sign of life of a replica.
#[derive(Clone, Debug)]
struct ReplicaMark {
    mark: String,
    /// On the clock of this process, from its start.
    at: Duration,
}

impl ServingReplicas {
    /// A replica with this name, in a group whose members renew their marks within `lifetime`.
    #[must_use]
    pub fn new(me: impl Into<String>, lifetime: Duration) -> Self {
        Self {
            me: me.into(),
            lifetime,
            seen: BTreeMap::new(),
        }
    }

    /// The name of this replica.
    #[must_use]
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Takes notice of the marks as they are now; `clock` is the time since the process started.
    pub fn observe(&mut self, marks: &BTreeMap<String, String>, clock: Duration) {
        self.seen.retain(|name, _| marks.contains_key(name));
        for (name, mark) in marks {
            if *name == self.me {
                continue;
            }
            let known = self.seen.get(name).is_some_and(|sign| sign.mark == *mark);
            if !known {
                let mark = mark.clone();
                self.seen
                    .insert(name.clone(), ReplicaMark { mark, at: clock });
            }
        }
    }

    /// The replicas that no longer renew their marks.
    #[must_use]
    pub fn dead(&self, clock: Duration) -> Vec<&str> {
        self.seen
            .iter()
            .filter(|(_, sign)| !self.is_fresh(sign, clock))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// Whether this replica is the only one alive.
    #[must_use]
    pub fn is_last(&self, clock: Duration) -> bool {
        !self.seen.values().any(|sign| self.is_fresh(sign, clock))
    }

    fn is_fresh(&self, sign: &ReplicaMark, clock: Duration) -> bool {
        clock.saturating_sub(sign.at) < self.lifetime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks<const N: usize>(marks: [(&str, &str); N]) -> BTreeMap<String, String> {
        marks
            .map(|(name, mark)| (name.to_owned(), mark.to_owned()))
            .into()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_replica_is_alive_as_long_as_its_mark_changes() {
        let mut presence = ServingReplicas::new("a", seconds(10));
        assert!(presence.is_last(seconds(0)));
        presence.observe(&marks([("a", "1"), ("b", "1")]), seconds(1));
        assert!(!presence.is_last(seconds(2)));
        presence.observe(&marks([("a", "2"), ("b", "2")]), seconds(9));
        assert!(!presence.is_last(seconds(18)));
        presence.observe(&marks([("a", "3"), ("b", "2")]), seconds(18));
        assert!(presence.is_last(seconds(19)));
        assert_eq!(presence.dead(seconds(19)), ["b"]);
    }

    #[test]
    fn a_replica_that_left_is_forgotten_and_one_just_met_is_alive() {
        let mut presence = ServingReplicas::new("a", seconds(10));
        presence.observe(&marks([("b", "1")]), seconds(100));
        assert!(!presence.is_last(seconds(100)));
        presence.observe(&marks([]), seconds(101));
        assert!(presence.is_last(seconds(101)));
    }
}
