//! Which credentials are used: the best that are neither refused nor over.

use std::collections::VecDeque;

use jiff::Timestamp;

/// How many refused credentials of one source are remembered, so as not to try them again.
const REFUSED_REMEMBERED: usize = 3;

/// Credentials that may be used, and those that may not.
#[derive(Debug)]
pub(super) struct CredentialPool<A> {
    keys: Vec<Key<A>>,
    refused: VecDeque<(String, u64)>,
    /// How many there ever were.
    serial: u64,
}

/// Credentials with the access that they give.
#[derive(Debug, Clone)]
pub(super) struct Key<A> {
    pub(super) source: String,
    pub(super) access: A,
    fingerprint: u64,
    priority: i64,
    expiration: Option<Timestamp>,
    serial: u64,
}

/// The source, the fingerprint, the priority and the end of credentials.
pub(super) type CredentialOffer = (String, u64, i64, Option<Timestamp>);

impl<A> Default for CredentialPool<A> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            refused: VecDeque::new(),
            serial: 0,
        }
    }
}

impl<A: Clone> CredentialPool<A> {
    /// The first of those with the highest priority; what is over is dropped.
    pub(super) fn best(&mut self, now: Timestamp) -> Option<Key<A>> {
        self.keys
            .retain(|key| key.expiration.is_none_or(|expiration| expiration > now));
        let highest = self.keys.iter().map(|key| key.priority).max()?;
        let best = self.keys.iter().find(|key| key.priority == highest);
        best.cloned()
    }

    /// Takes credentials in, unless they were refused before. A source has one at a time.
    pub(super) fn add(
        &mut self,
        (source, fingerprint, priority, expiration): CredentialOffer,
        access: A,
    ) {
        let refused = (source, fingerprint);
        if self.refused.contains(&refused) {
            return;
        }
        let (source, fingerprint) = refused;
        self.serial += 1;
        self.keys.retain(|key| key.source != source);
        self.keys.push(Key {
            source,
            access,
            fingerprint,
            priority,
            expiration,
            serial: self.serial,
        });
    }

    /// The cluster does not accept these; tells whether that is news.
    pub(super) fn refuse(&mut self, key: &Key<A>) -> bool {
        let before = self.keys.len();
        self.keys.retain(|known| known.serial != key.serial);
        if self.keys.len() == before {
            return false;
        }
        let of_source = |refused: &&(String, u64)| refused.0 == key.source;
        if self.refused.iter().filter(of_source).count() >= REFUSED_REMEMBERED
            && let Some(oldest) = self.refused.iter().position(|it| it.0 == key.source)
        {
            self.refused.remove(oldest);
        }
        self.refused
            .push_back((key.source.clone(), key.fingerprint));
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
    fn the_highest_priority_goes_first_until_it_is_over() {
        let mut pool = CredentialPool::default();
        pool.add(offer("a", 1, 0, None), ());
        pool.add(offer("b", 2, 10, Some(100)), ());
        pool.add(offer("c", 3, 10, None), ());
        assert_eq!(best(&mut pool, 99), Some(2));
        assert_eq!(best(&mut pool, 100), Some(3));
    }

    #[test]
    fn what_was_refused_is_not_taken_again_from_the_same_source() {
        let mut pool = CredentialPool::default();
        pool.add(offer("a", 1, 0, None), ());
        let key = pool.best(at(0)).unwrap();
        assert!(pool.refuse(&key));
        assert!(!pool.refuse(&key), "it is known already");
        pool.add(offer("a", 1, 0, None), ());
        assert_eq!(best(&mut pool, 0), None);
        pool.add(offer("a", 2, 0, None), ());
        assert_eq!(best(&mut pool, 0), Some(2));
    }

    #[test]
    fn refused_credentials_are_forgotten_after_a_few_others() {
        let mut pool = CredentialPool::default();
        for fingerprint in 1..=4 {
            pool.add(offer("a", fingerprint, 0, None), ());
            let key = pool.best(at(0)).unwrap();
            pool.refuse(&key);
        }
        pool.add(offer("a", 2, 0, None), ());
        assert_eq!(best(&mut pool, 0), None);
        pool.add(offer("a", 1, 0, None), ());
        assert_eq!(best(&mut pool, 0), Some(1));
    }

    #[test]
    fn a_source_has_one_at_a_time() {
        let mut pool = CredentialPool::default();
        pool.add(offer("a", 1, 5, None), ());
        pool.add(offer("a", 2, 0, None), ());
        assert_eq!(best(&mut pool, 0), Some(2));
    }
}
