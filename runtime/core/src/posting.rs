//! Decides which Kubernetes events are sent: repeats are counted, many similar events are combined,
//! and each object has a budget.
//!
//! The [`EventCorrelator`] is the queue of events, too: it merges waiting events, so that many
//! events cost few requests and little memory. The rules are those of client-go.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher as _},
    time::Duration,
};

use jiff::Timestamp;

use crate::message::{beginning, shortened};

/// The longest reason that the API accepts, in bytes.
const LONGEST_REASON: usize = 128;

/// The beginning of the message of combined events.
const COMBINED: &str = "(combined from similar events): ";

/// The limits of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// Requests that an object may cause at once.
    pub burst: u32,
    /// The time after which an object may cause one more.
    pub refill: Duration,
    /// The number of events with the same type and reason that keep their own messages.
    pub similar: usize,
    /// The time for which they are remembered.
    pub similar_within: Duration,
    /// The shortest time between updates of a count.
    pub update_every: Duration,
    /// The number of waiting events; of more, the oldest are dropped.
    pub waiting: usize,
    /// The number of sent events that are remembered, so that repeats are counted.
    pub remembered: usize,
    /// Pauses before an event is sent again; after the last one it is dropped.
    pub retries: Vec<Duration>,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventContent {
    /// The type, such as `Normal` or `Warning`.
    pub r#type: String,
    /// The reason, in one word.
    pub reason: String,
    /// The message.
    pub message: String,
    /// Its time.
    pub at: Timestamp,
}

/// The key of an event: its object and content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventKey<S> {
    /// The object.
    pub subject: S,
    /// The type, such as `Normal` or `Warning`.
    pub r#type: String,
    /// The reason, in one word.
    pub reason: String,
    /// The message; none for combined events.
    message: Option<String>,
}

/// An event that is to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEvent<S> {
    /// Its key, for [`EventCorrelator::sent`], `recreate`, `failed` and `forget`.
    pub key: EventKey<S>,
    /// Its message.
    pub message: String,
    /// The number of occurrences.
    pub count: u32,
    /// The time of the first occurrence.
    pub first: Timestamp,
    /// The time of the last occurrence.
    pub last: Timestamp,
    /// The name of the event that is to be updated; none for one that is to be created.
    pub update: Option<String>,
}

#[derive(Clone, Debug)]
struct PendingEvent {
    message: String,
    count: u32,
    first: Timestamp,
    last: Timestamp,
    name: Option<String>,
    waits: bool,
    failures: usize,
    not_before: Duration,
    touched: Duration,
}

#[derive(Clone, Debug)]
struct Bucket {
    tokens: f64,
    filled: Duration,
}

#[derive(Clone, Debug)]
struct Similar {
    messages: HashSet<u64>,
    since: Duration,
}

/// The events of all objects, both waiting and sent.
#[derive(Clone, Debug)]
pub struct EventCorrelator<S> {
    limits: EventLimits,
    entries: HashMap<EventKey<S>, PendingEvent>,
    queue: VecDeque<EventKey<S>>,
    buckets: HashMap<S, Bucket>,
    similar: HashMap<(S, String, String), Similar>,
    dropped: u64,
}

// === impl EventLimits ===

impl Default for EventLimits {
    fn default() -> Self {
        Self {
            burst: 25,
            refill: Duration::from_secs(300),
            similar: 10,
            similar_within: Duration::from_secs(600),
            update_every: Duration::from_secs(1),
            waiting: 1000,
            remembered: 4096,
            retries: [1, 1, 2, 3, 5, 8, 13, 21].map(Duration::from_secs).to_vec(),
        }
    }
}

// === impl EventCorrelator ===

impl<S: Clone + Eq + Hash> EventCorrelator<S> {
    /// A correlator without events.
    #[must_use]
    pub fn new(limits: EventLimits) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            queue: VecDeque::new(),
            buckets: HashMap::new(),
            similar: HashMap::new(),
            dropped: 0,
        }
    }

    /// Adds an event to be sent. `now` is the time since any fixed moment.
    pub fn add(&mut self, subject: S, content: EventContent, now: Duration) {
        let content = EventContent {
            reason: beginning(&content.reason, LONGEST_REASON).to_owned(),
            ..content
        };
        let mut message = shortened(&content.message);
        let distinct = self.is_distinct(&subject, &content, now);
        let key = EventKey {
            subject,
            r#type: content.r#type,
            reason: content.reason,
            message: distinct.then(|| message.clone()),
        };
        if !distinct {
            message = shortened(&format!("{COMBINED}{message}"));
        }
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| PendingEvent {
                message: String::new(),
                count: 0,
                first: content.at,
                last: content.at,
                name: None,
                waits: false,
                failures: 0,
                not_before: now,
                touched: now,
            });
        entry.message = message;
        entry.count = entry.count.saturating_add(1);
        entry.last = entry.last.max(content.at);
        entry.touched = now;
        if !std::mem::replace(&mut entry.waits, true) {
            self.queue.push_back(key);
        }
        self.make_room();
    }

    /// The next event that may be sent; it counts as sent unless `failed` is called.
    pub fn next(&mut self, now: Duration) -> Option<DueEvent<S>> {
        let ready = |it: &mut Self, key: &EventKey<S>| {
            let entry = it.entries.get(key);
            entry.is_some_and(|entry| entry.not_before <= now) && it.take_token(&key.subject, now)
        };
        let position = (0..self.queue.len()).find(|&position| {
            let key = self.queue[position].clone();
            ready(self, &key)
        })?;
        let key = self.queue.remove(position)?;
        let entry = self.entries.get_mut(&key)?;
        entry.waits = false;
        entry.not_before = now.saturating_add(self.limits.update_every);
        Some(DueEvent {
            message: entry.message.clone(),
            count: entry.count,
            first: entry.first,
            last: entry.last,
            update: entry.name.clone(),
            key,
        })
    }

    /// The time until a waiting event may be sent; none if no event waits.
    #[must_use]
    pub fn wait(&self, now: Duration) -> Option<Duration> {
        let waits = self.queue.iter().filter_map(|key| {
            let entry = self.entries.get(key)?;
            let budget = self.until_token(&key.subject, now);
            Some(entry.not_before.saturating_sub(now).max(budget))
        });
        waits.min()
    }

    /// Lets all waiting events be sent without a delay for repeats.
    pub fn skip_delays(&mut self) {
        for key in &self.queue {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.not_before = Duration::ZERO;
            }
        }
    }

    /// The API server stored the event under this name.
    pub fn sent(&mut self, key: &EventKey<S>, name: &str) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.name = Some(name.to_owned());
            entry.failures = 0;
        }
    }

    /// The event that was to be updated does not exist any more, or may not be updated: it is
    /// created again.
    pub fn recreate(&mut self, key: &EventKey<S>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.name = None;
            entry.not_before = Duration::ZERO;
            self.enqueue(key);
        }
    }

    /// The event could not be sent; returns `false` if it is dropped.
    pub fn failed(&mut self, key: &EventKey<S>, now: Duration) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        let Some(pause) = self.limits.retries.get(entry.failures) else {
            self.forget(key);
            return false;
        };
        entry.failures += 1;
        entry.not_before = now.saturating_add(*pause);
        self.enqueue(key);
        true
    }

    /// Drops an event that the API server will never accept.
    pub fn forget(&mut self, key: &EventKey<S>) {
        self.entries.remove(key);
        self.queue.retain(|waiting| waiting != key);
    }

    /// The number of events dropped since the last call.
    pub fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn enqueue(&mut self, key: &EventKey<S>) {
        if let Some(entry) = self.entries.get_mut(key)
            && !std::mem::replace(&mut entry.waits, true)
        {
            self.queue.push_back(key.clone());
        }
    }

    /// Whether the event keeps its own message: there are few different ones of its type and reason.
    fn is_distinct(&mut self, subject: &S, content: &EventContent, now: Duration) -> bool {
        let group = (
            subject.clone(),
            content.r#type.clone(),
            content.reason.clone(),
        );
        let fresh = || Similar {
            messages: HashSet::new(),
            since: now,
        };
        let similar = self.similar.entry(group).or_insert_with(fresh);
        if now.saturating_sub(similar.since) > self.limits.similar_within {
            *similar = fresh();
        }
        let mut hasher = DefaultHasher::new();
        content.message.hash(&mut hasher);
        let hash = hasher.finish();
        if similar.messages.contains(&hash) {
            return true;
        }
        similar.messages.len() < self.limits.similar && similar.messages.insert(hash)
    }

    fn tokens(&self, subject: &S, now: Duration) -> f64 {
        let burst = f64::from(self.limits.burst);
        let Some(bucket) = self.buckets.get(subject) else {
            return burst;
        };
        let passed = now.saturating_sub(bucket.filled).as_secs_f64();
        let refill = self.limits.refill.as_secs_f64();
        if refill <= 0.0 {
            return burst;
        }
        (bucket.tokens + passed / refill).min(burst)
    }

    fn take_token(&mut self, subject: &S, now: Duration) -> bool {
        let tokens = self.tokens(subject, now);
        if tokens < 1.0 {
            return false;
        }
        let bucket = Bucket {
            tokens: tokens - 1.0,
            filled: now,
        };
        self.buckets.insert(subject.clone(), bucket);
        true
    }

    fn until_token(&self, subject: &S, now: Duration) -> Duration {
        let missing = 1.0 - self.tokens(subject, now);
        if missing <= 0.0 {
            return Duration::ZERO;
        }
        let seconds = self.limits.refill.as_secs_f64() * missing;
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        // A little longer, so that rounding does not end the wait too early.
        wait.saturating_add(Duration::from_millis(1))
    }

    /// Enforces the limits: drops the oldest waiting events, and the half of the sent ones that had
    /// no repeat for the longest time.
    fn make_room(&mut self) {
        while self.queue.len() > self.limits.waiting {
            if let Some(key) = self.queue.pop_front() {
                self.entries.remove(&key);
                self.dropped += 1;
            }
        }
        let limit = self.limits.remembered.max(self.limits.waiting);
        if self.entries.len() > limit {
            let mut ages: Vec<Duration> = self.entries.values().map(|it| it.touched).collect();
            let middle = ages.len() / 2;
            let (_, &mut median, _) = ages.select_nth_unstable(middle);
            self.entries.retain(|_, it| it.waits || it.touched > median);
        } else if self.buckets.len() <= limit && self.similar.len() <= limit {
            return;
        }
        let alive: HashSet<&S> = self.entries.keys().map(|key| &key.subject).collect();
        self.similar
            .retain(|(subject, ..), _| alive.contains(subject));
        // An object without remembered events gets its full budget back, a little early.
        self.buckets.retain(|subject, _| alive.contains(subject));
    }
}

#[cfg(test)]
mod tests;
