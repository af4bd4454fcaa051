//! The newest known state of an object, for those who accompany it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::client::resource_version::ResourceVersion;

/// The newest state, as text: that is a fraction of the memory of anything parsed.
#[derive(Debug)]
pub(crate) struct LatestState {
    /// Never held across an await.
    newest: Mutex<Snapshot>,
    news: Notify,
}

/// One state of an object.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) text: Arc<RawValue>,
    /// Counts the states that were seen.
    pub(crate) generation: u32,
    /// Whether the text was decoded into the type of its kind before.
    pub(crate) fits: bool,
    version: Option<ResourceVersion>,
}

impl LatestState {
    pub(crate) fn new(text: Arc<RawValue>, version: Option<ResourceVersion>) -> Self {
        Self {
            newest: Mutex::new(Snapshot {
                text,
                generation: 0,
                fits: false,
                version,
            }),
            news: Notify::new(),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().clone()
    }

    /// Takes in a state, unless it is older than the one that is known.
    pub(crate) fn update(&self, text: Arc<RawValue>, version: Option<ResourceVersion>) {
        let newest = self.lock();
        if let (Some(seen), Some(known)) = (&version, &newest.version)
            && seen.is_known_after(known)
        {
            return;
        }
        self.put(newest, text, version);
    }

    /// Takes in a state, whatever is known.
    pub(crate) fn replace(&self, text: Arc<RawValue>, version: Option<ResourceVersion>) {
        self.put(self.lock(), text, version);
    }

    /// The text of this generation could be decoded into the type of its kind.
    pub(crate) fn found_fitting(&self, generation: u32) {
        let mut newest = self.lock();
        if newest.generation == generation {
            newest.fits = true;
        }
    }

    fn put(
        &self,
        mut newest: MutexGuard<'_, Snapshot>,
        text: Arc<RawValue>,
        version: Option<ResourceVersion>,
    ) {
        *newest = Snapshot {
            text,
            generation: newest.generation.wrapping_add(1),
            fits: false,
            version,
        };
        drop(newest);
        self.news.notify_waiters();
    }

    /// Waits for a state that came after this generation.
    pub(crate) async fn after(&self, generation: u32) -> Snapshot {
        loop {
            let news = self.news.notified();
            let snapshot = self.snapshot();
            if snapshot.generation != generation {
                return snapshot;
            }
            news.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    fn state(number: u32) -> (Arc<RawValue>, Option<ResourceVersion>) {
        let text = to_raw_value(&number).unwrap();
        (text.into(), Some(ResourceVersion::new(&number.to_string())))
    }

    fn live(number: u32) -> LatestState {
        let (text, version) = state(number);
        LatestState::new(text, version)
    }

    #[test]
    fn states_never_go_back() {
        let live = live(5);
        for (seen, shown) in [(4, "5"), (7, "7"), (6, "7"), (7, "7")] {
            let (text, version) = state(seen);
            live.update(text, version);
            assert_eq!(live.snapshot().text.get(), shown);
        }
        assert_eq!(live.snapshot().generation, 1);
    }

    #[tokio::test]
    async fn a_change_is_awaited_and_none_is_missed() {
        let live = live(1);
        let before = live.snapshot().generation;
        let (text, version) = state(2);
        let (seen, ()) = tokio::join!(live.after(before), async {
            tokio::task::yield_now().await;
            live.update(text, version);
        });
        assert_eq!(seen.text.get(), "2");
        assert_eq!(live.after(before).await.text.get(), "2");
    }
}
