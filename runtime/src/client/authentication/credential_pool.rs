//! Chooses the credentials to use: those with the highest priority, neither rejected nor expired.

use std::collections::VecDeque;

use jiff::Timestamp;

/// The number of rejected credentials per login handler that are not tried again.
const REJECTED_REMEMBERED: usize = 3;

/// The usable and the rejected credentials.
#[derive(Debug)]
pub(super) struct CredentialPool<C> {
    credentials: Vec<PooledCredentials<C>>,
    rejected: VecDeque<(String, u64)>,
    /// The number of credentials added so far.
    serial: u64,
}

/// Credentials with the client that uses them.
#[derive(Debug, Clone)]
pub(super) struct PooledCredentials<C> {
    pub(super) source: String,
    pub(super) client: C,
    fingerprint: u64,
    priority: i64,
    expiration: Option<Timestamp>,
    serial: u64,
}

/// The login handler, the fingerprint, the priority and the expiration of credentials.
pub(super) type CredentialOffer = (String, u64, i64, Option<Timestamp>);

impl<C> Default for CredentialPool<C> {
    fn default() -> Self {
        Self {
            credentials: Vec::new(),
            rejected: VecDeque::new(),
            serial: 0,
        }
    }
}

impl<C: Clone> CredentialPool<C> {
    /// The first of those with the highest priority; drops expired credentials.
    pub(super) fn best(&mut self, now: Timestamp) -> Option<PooledCredentials<C>> {
        self.credentials
            .retain(|it| it.expiration.is_none_or(|expiration| expiration > now));
        let highest = self.credentials.iter().map(|it| it.priority).max()?;
        let best = self.credentials.iter().find(|it| it.priority == highest);
        best.cloned()
    }

    /// Adds credentials, unless they were rejected before. They replace those of the same handler.
    pub(super) fn add(
        &mut self,
        (source, fingerprint, priority, expiration): CredentialOffer,
        client: C,
    ) {
        let rejected = (source, fingerprint);
        if self.rejected.contains(&rejected) {
            return;
        }
        let (source, fingerprint) = rejected;
        self.serial += 1;
        self.credentials.retain(|it| it.source != source);
        self.credentials.push(PooledCredentials {
            source,
            client,
            fingerprint,
            priority,
            expiration,
            serial: self.serial,
        });
    }

    /// Removes credentials that the API server has rejected; `false` if they are removed already.
    pub(super) fn reject(&mut self, rejected: &PooledCredentials<C>) -> bool {
        let before = self.credentials.len();
        self.credentials
            .retain(|known| known.serial != rejected.serial);
        if self.credentials.len() == before {
            return false;
        }
        let source = &rejected.source;
        let of_source = |known: &&(String, u64)| known.0 == *source;
        if self.rejected.iter().filter(of_source).count() >= REJECTED_REMEMBERED
            && let Some(oldest) = self.rejected.iter().position(|it| it.0 == *source)
        {
            self.rejected.remove(oldest);
        }
        self.rejected
            .push_back((source.clone(), rejected.fingerprint));
        true
    }

    pub(super) fn has_ever_had_any(&self) -> bool {
        self.serial > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn offer(source: &str, fingerprint: u64, priority: i64, end: Option<i64>) -> CredentialOffer {
        (source.to_owned(), fingerprint, priority, end.map(at))
    }

    fn best(pool: &mut CredentialPool<()>, now: i64) -> Option<u64> {
        Some(pool.best(at(now))?.fingerprint)
    }

    #[test]
    fn the_highest_priority_is_used_until_it_expires() {
        let mut pool = CredentialPool::default();
        pool.add(offer("a", 1, 0, None), ());
        pool.add(offer("b", 2, 10, Some(100)), ());
        pool.add(offer("c", 3, 10, None), ());
        assert_eq!(best(&mut pool, 99), Some(2));
        assert_eq!(best(&mut pool, 100), Some(3));
    }

    #[test]
    fn rejected_credentials_are_not_added_again_from_the_same_handler() {
        let mut pool = CredentialPool::default();
        pool.add(offer("a", 1, 0, None), ());
        let key = pool.best(at(0)).unwrap();
        assert!(pool.reject(&key));
        assert!(!pool.reject(&key), "they are removed already");
        pool.add(offer("a", 1, 0, None), ());
        assert_eq!(best(&mut pool, 0), None);
        pool.add(offer("a", 2, 0, None), ());
        assert_eq!(best(&mut pool, 0), Some(2));
    }

    #[test]
    fn rejected_credentials_may_be_added_again_after_a_few_others() {
        let mut pool = CredentialPool::default();
        for fingerprint in 1..=4 {
            pool.add(offer("a", fingerprint, 0, None), ());
            let key = pool.best(at(0)).unwrap();
            pool.reject(&key);
        }
        pool.add(offer("a", 2, 0, None), ());
        assert_eq!(best(&mut pool, 0), None);
        pool.add(offer("a", 1, 0, None), ());
        assert_eq!(best(&mut pool, 0), Some(1));
    }

    #[test]
    fn new_credentials_replace_those_of_the_same_handler() {
        let mut pool = CredentialPool::default();
        pool.add(offer("a", 1, 5, None), ());
        pool.add(offer("a", 2, 0, None), ());
        assert_eq!(best(&mut pool, 0), Some(2));
    }
}
