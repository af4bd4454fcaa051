//! The newest state of an object, for its daemons and timers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kopf_core::object::resource_version::ResourceVersion;
use serde_json::value::RawValue;
use tokio::sync::Notify;

/// The newest state, as text, which takes a fraction of the memory of a parsed object.
#[derive(Debug)]
pub(crate) struct LatestState {
    /// Never held across an await.
    newest: Mutex<ObjectSnapshot>,
    changed: Notify,
}

/// One state of an object.
#[derive(Debug, Clone)]
pub(crate) struct ObjectSnapshot {
    pub(crate) text: Arc<RawValue>,
    /// Counts the states.
    pub(crate) generation: u32,
    /// True if the text was decoded into the type of its kind before.
    pub(crate) decodable: bool,
    version: Option<ResourceVersion>,
}

/// The deepest JSON that `serde_json` parses into a value.
const DEEPEST: usize = 127;

impl LatestState {
    pub(crate) fn new(text: Arc<RawValue>, version: Option<ResourceVersion>) -> Self {
        Self {
            newest: Mutex::new(ObjectSnapshot {
                text,
                generation: 0,
                decodable: false,
                version,
            }),
            changed: Notify::new(),
        }
    }

    pub(crate) fn snapshot(&self) -> ObjectSnapshot {
        self.lock().clone()
    }

    /// Whether a version is newer than that of the newest state.
    pub(crate) fn is_older_than(&self, version: Option<&ResourceVersion>) -> bool {
        match (version, &self.lock().version) {
            (Some(version), Some(known)) => !version.is_not_newer_than(known),
            _ => false,
        }
    }

    /// Takes a state, unless it is older than the newest one, or cannot be parsed: then daemons
    /// and timers keep the former state.
    pub(crate) fn update(&self, text: Arc<RawValue>, version: Option<ResourceVersion>) {
        if nesting(text.get()) > DEEPEST {
            return;
        }
        let newest = self.lock();
        if let (Some(newer), Some(known)) = (&version, &newest.version)
            && newer.is_not_newer_than(known)
        {
            return;
        }
        self.put(newest, text, version);
    }

    /// Takes a state, even an older one.
    pub(crate) fn replace(&self, text: Arc<RawValue>, version: Option<ResourceVersion>) {
        self.put(self.lock(), text, version);
    }

    /// Notes that the text of this generation was decoded into the type of its kind.
    pub(crate) fn mark_decodable(&self, generation: u32) {
        let mut newest = self.lock();
        if newest.generation == generation {
            newest.decodable = true;
        }
    }

    fn put(
        &self,
        mut newest: MutexGuard<'_, ObjectSnapshot>,
        text: Arc<RawValue>,
        version: Option<ResourceVersion>,
    ) {
        *newest = ObjectSnapshot {
            text,
            generation: newest.generation.wrapping_add(1),
            decodable: false,
            version,
        };
        drop(newest);
        self.changed.notify_waiters();
    }

    /// Waits for a state that came after this generation.
    pub(crate) async fn after(&self, generation: u32) -> ObjectSnapshot {
        loop {
            let changed = self.changed.notified();
            let snapshot = self.snapshot();
            if snapshot.generation != generation {
                return snapshot;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ObjectSnapshot> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of lists and objects in each other.
fn nesting(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    fn state(number: u32) -> (Arc<RawValue>, Option<ResourceVersion>) {
        let text = to_raw_value(&number).unwrap();
        (text.into(), Some(ResourceVersion::new(&number.to_string())))
    }

    fn latest(number: u32) -> LatestState {
        let (text, version) = state(number);
        LatestState::new(text, version)
    }

    #[test]
    fn an_older_state_is_ignored() {
        let latest = latest(5);
        for (newer, shown) in [(4, "5"), (7, "7"), (6, "7"), (7, "7")] {
            let (text, version) = state(newer);
            latest.update(text, version);
            assert_eq!(latest.snapshot().text.get(), shown);
        }
        assert_eq!(latest.snapshot().generation, 1);
    }

    #[test]
    fn a_state_that_is_nested_too_deep_is_ignored() {
        let nested = |levels: usize| {
            let (open, close) = (r#"{"a{\"[":["#.repeat(levels), "]}".repeat(levels));
            format!("{open}0{close}")
        };
        let latest = latest(5);
        for levels in [1, 20, 63, 64, 65, 5000] {
            let text = nested(levels);
            assert_eq!(nesting(&text), 2 * levels);
            let readable = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(readable, 2 * levels <= DEEPEST);
            latest.update(RawValue::from_string(text.clone()).unwrap().into(), None);
            assert_eq!(latest.snapshot().text.get() == text, readable);
        }
    }

    #[tokio::test]
    async fn waiting_for_a_change_misses_none() {
        let latest = latest(1);
        let before = latest.snapshot().generation;
        let (text, version) = state(2);
        let (newer, ()) = tokio::join!(latest.after(before), async {
            tokio::task::yield_now().await;
            latest.update(text, version);
        });
        assert_eq!(newer.text.get(), "2");
        assert_eq!(latest.after(before).await.text.get(), "2");
    }
}
