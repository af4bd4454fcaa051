//! Chooses the credentials to use: those with the highest priority, neither rejected nor expired.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;

/// The number of rejected credentials per login handler that are not tried again.
const REJECTED_REMEMBERED: usize = 3;

/// The usable and the rejected credentials.
#[derive(Debug)]
pub(super) struct CredentialPool<C> {
    credentials: Vec<PooledCredentials<C>>,
    rejected: VecDeque<RejectedCredentials>,
    /// The number of credentials added so far.
    serial: u64,
}

/// Credentials with the client that uses them.
#[derive(Debug, Clone)]
pub(super) struct PooledCredentials<C> {
    pub(super) source: Arc<str>,
    pub(super) client: C,
    fingerprint: u64,
    priority: i64,
    expiration: Option<Timestamp>,
    serial: u64,
}

/// Credentials that a login handler has found.
#[derive(Debug, Clone)]
pub(super) struct CredentialOffer {
    /// The id of the login handler.
    pub(super) source: Arc<str>,
    pub(super) fingerprint: u64,
    pub(super) priority: i64,
    pub(super) expiration: Option<Timestamp>,
    /// The number of rejections after which the same credentials are not tried again.
    pub(super) tries: u32,
}

/// Credentials that the API server has rejected since it last accepted them.
#[derive(Debug)]
struct RejectedCredentials {
    source: Arc<str>,
    fingerprint: u64,
    times: u32,
}

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

    /// Adds credentials, unless they were rejected too often. They replace those of the same handler.
    pub(super) fn add(&mut self, offer: CredentialOffer, client: C) {
        let rejected = self.rejected.iter().find(|it| it.is_of(&offer));
        if rejected.is_some_and(|it| it.times >= offer.tries) {
            return;
        }
        self.serial += 1;
        self.credentials.retain(|it| it.source != offer.source);
        self.credentials.push(PooledCredentials {
            source: offer.source,
            client,
            fingerprint: offer.fingerprint,
            priority: offer.priority,
            expiration: offer.expiration,
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
        let PooledCredentials {
            source,
            fingerprint,
            ..
        } = rejected;
        let mut earlier = self.rejected.iter_mut();
        if let Some(same) =
            earlier.find(|it| it.source == *source && it.fingerprint == *fingerprint)
        {
            same.times += 1;
            return true;
        }
        let of_source = |known: &&RejectedCredentials| known.source == *source;
        if self.rejected.iter().filter(of_source).count() >= REJECTED_REMEMBERED
            && let Some(oldest) = self.rejected.iter().position(|it| it.source == *source)
        {
            self.rejected.remove(oldest);
        }
        self.rejected.push_back(RejectedCredentials {
            source: Arc::clone(source),
            fingerprint: *fingerprint,
            times: 1,
        });
        true
    }

    /// Forgets the rejections of credentials that the API server accepts again.
    pub(super) fn accept(&mut self, accepted: &PooledCredentials<C>) {
        self.rejected
            .retain(|it| it.source != accepted.source || it.fingerprint != accepted.fingerprint);
    }

    /// The login handlers whose credentials were rejected, each once.
    pub(super) fn rejected(&self) -> impl Iterator<Item = &str> {
        let mut sources: Vec<&str> = self.rejected.iter().map(|it| &*it.source).collect();
        sources.sort_unstable();
        sources.dedup();
        sources.into_iter()
    }

    pub(super) fn has_ever_had_any(&self) -> bool {
        self.serial > 0
    }
}

impl RejectedCredentials {
    fn is_of(&self, offer: &CredentialOffer) -> bool {
        self.source == offer.source && self.fingerprint == offer.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn offer(source: &str, fingerprint: u64, priority: i64, end: Option<i64>) -> CredentialOffer {
        CredentialOffer {
            source: source.into(),
            fingerprint,
            priority,
            expiration: end.map(at),
            tries: 1,
        }
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

    #[test]
    fn credentials_that_others_renew_are_tried_again_until_their_tries_are_used_up() {
        let mut pool = CredentialPool::default();
        let twice = || CredentialOffer {
            tries: 2,
            ..offer("a", 1, 0, None)
        };
        let reject = |pool: &mut CredentialPool<()>| {
            pool.add(twice(), ());
            let key = pool.best(at(0)).unwrap();
            assert!(pool.reject(&key));
        };
        reject(&mut pool);
        pool.add(twice(), ());
        let accepted = pool.best(at(0)).unwrap();
        pool.accept(&accepted);
        reject(&mut pool);
        reject(&mut pool);
        pool.add(twice(), ());
        assert_eq!(best(&mut pool, 0), None);
        assert_eq!(pool.rejected().collect::<Vec<_>>(), ["a"]);
    }
}
