//! The queue of objects: which object is handled when, and what a pause drops.
//!
//! There is one entry for each known object. It holds the memory of the object and the items that
//! arrived since its worker started, folded into one batch: the queue is bounded by the number of
//! objects. The result of a worker says when the queue calls it again if no new item arrives.
//!
//! At a pause the queue drops all batches that no worker has taken, and all planned calls: the
//! lists that follow the pause bring the objects back.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use crate::{machine::object::NextCall, table};

/// The longest sleep: timers panic on delays of more than about two years, and users may ask for any.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// The next part of a delay, which may be of any length. What is woken early sleeps again.
#[must_use]
pub fn next_sleep(delay: Duration) -> Duration {
    match planted!(SleepsUncut) {
        true => delay,
        false => delay.min(LONGEST_SLEEP),
    }
}

/// What the queue has to know about batches and memories.
pub trait QueueRules {
    /// The identity of an object.
    type Key: Clone + Eq + Hash;
    /// The items of an object that no worker has taken yet.
    type Batch: Default;
    /// The state of an object between calls.
    type Memory: Default;

    /// True if a pause must not drop this batch, as no list would bring its items again.
    fn survives_pause(&self, batch: &Self::Batch) -> bool;

    /// Drops the state that was being handled: another operator may change it during a pause.
    fn drop_plan(&self, memory: &mut Self::Memory);

    /// True if the object is gone, and only a planned call kept its memory.
    fn is_gone(&self, memory: &Self::Memory) -> bool;

    /// True if this batch needs no worker, as it holds nothing new.
    fn is_redundant(&self, key: &Self::Key, memory: &Self::Memory, batch: &Self::Batch) -> bool;
}

/// The backlog and the timers of a queue, which its owner keeps.
pub trait QueueEffects<K> {
    /// A planned call.
    type Timer;

    /// Puts an object at the end of the backlog.
    fn ready(&mut self, key: K);

    /// Clears the backlog.
    fn clear_ready(&mut self);

    /// Plans a call.
    fn plan(&mut self, key: K, delay: Duration) -> Self::Timer;

    /// Cancels a planned call.
    fn cancel(&mut self, timer: &Self::Timer);

    /// Cancels all planned calls.
    fn cancel_all(&mut self);
}

/// Whether the operator runs, and since which pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseReading {
    /// The number of pauses so far.
    pub epoch: u64,
    /// Whether work may begin.
    pub running: bool,
}

/// The entries of all known objects; `T` is a planned call.
pub struct ObjectQueue<R: QueueRules, T, S = RandomState> {
    entries: HashMap<R::Key, QueueEntry<R, T>, S>,
    /// The epoch of all waiting batches and planned calls; a pause begins a new one.
    epoch: u64,
    paused: bool,
}

/// The queue's state of one object; small while the object is idle.
struct QueueEntry<R: QueueRules, T> {
    phase: EntryPhase<T>,
    memory: R::Memory,
    pending: Option<Box<R::Batch>>,
}

/// The phase of an object in the queue.
enum EntryPhase<T> {
    /// Waits for an item.
    Idle,
    /// In the backlog.
    Queued,
    /// A worker processes it.
    Working,
    /// Waits for an item or for its planned call.
    Sleeping(T),
    /// Waits for its planned call only.
    Held,
}

/// A worker that begins.
pub struct StartedWork<R: QueueRules> {
    /// The epoch in which it begins.
    pub epoch: u64,
    /// The memory of its object.
    pub memory: R::Memory,
    /// The items; none if this call was planned.
    pub batch: R::Batch,
}

/// A worker that has ended.
pub struct FinishedWork<R: QueueRules> {
    /// The epoch in which it began.
    pub epoch: u64,
    /// Its object.
    pub key: R::Key,
    /// The memory of the object.
    pub memory: R::Memory,
    /// The time of the next call.
    pub next: NextCall,
}

// === impl ObjectQueue ===

impl<R: QueueRules, T, S: BuildHasher + Default> ObjectQueue<R, T, S> {
    /// A queue without objects.
    #[must_use]
    pub fn new(epoch: u64) -> Self {
        Self {
            entries: HashMap::default(),
            epoch,
            paused: false,
        }
    }

    /// The epoch of all waiting batches and planned calls.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the operator is paused, as far as the queue knows.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// The objects that the queue knows.
    pub fn keys(&self) -> impl Iterator<Item = &R::Key> {
        self.entries.keys()
    }

    /// Follows the operator into a pause and out of it.
    pub fn follow_pauses(
        &mut self,
        rules: &R,
        effects: &mut impl QueueEffects<R::Key, Timer = T>,
        now: PauseReading,
    ) {
        if self.epoch != now.epoch {
            self.epoch = now.epoch;
            self.drop_pending(rules, effects);
        }
        if self.paused && now.running {
            self.requeue_survivors(effects);
        }
        self.paused = !now.running;
    }

    /// Drops all batches and planned calls that no worker has started.
    fn drop_pending(&mut self, rules: &R, effects: &mut impl QueueEffects<R::Key, Timer = T>) {
        effects.clear_ready();
        effects.cancel_all();
        self.entries.retain(|_, entry| {
            entry.pending.take_if(|batch| !rules.survives_pause(batch));
            if matches!(entry.phase, EntryPhase::Working) {
                return true;
            }
            rules.drop_plan(&mut entry.memory);
            entry.phase = EntryPhase::Idle;
            entry.pending.is_some() || !rules.is_gone(&entry.memory)
        });
        // A pause may be over before the queue notices it: what survived is to be requeued too.
        self.paused = true;
    }

    /// Requeues the objects whose batches survived the pause.
    fn requeue_survivors(&mut self, effects: &mut impl QueueEffects<R::Key, Timer = T>) {
        self.entries.iter_mut().for_each(|(key, entry)| {
            if entry.pending.is_some() && matches!(entry.phase, EntryPhase::Idle) {
                entry.phase = EntryPhase::Queued;
                effects.ready(key.clone());
            }
        });
    }

    /// Adds an item to the batch of an object.
    pub fn push(
        &mut self,
        rules: &R,
        effects: &mut impl QueueEffects<R::Key, Timer = T>,
        key: R::Key,
        now: PauseReading,
        fold: impl FnOnce(&R::Key, &mut R::Batch),
    ) {
        // The stream may have noticed a pause, and its end, before the queue.
        self.follow_pauses(rules, effects, now);
        let entry = self.entries.entry(key.clone()).or_default();
        let batch = entry.pending.get_or_insert_default();
        fold(&key, batch);
        if self.paused {
            entry.pending.take_if(|batch| !rules.survives_pause(batch));
            return;
        }
        match &entry.phase {
            EntryPhase::Idle => {}
            EntryPhase::Sleeping(timer) => effects.cancel(timer),
            EntryPhase::Queued | EntryPhase::Working | EntryPhase::Held => return,
        }
        entry.phase = EntryPhase::Queued;
        effects.ready(key);
    }

    /// The time of a planned call has come.
    pub fn timer_expired(
        &mut self,
        effects: &mut impl QueueEffects<R::Key, Timer = T>,
        key: R::Key,
    ) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.phase = EntryPhase::Queued;
            effects.ready(key);
        }
    }

    /// Starts a worker for an object of the backlog; none if there is nothing to do.
    pub fn start(&mut self, rules: &R, key: &R::Key) -> Option<StartedWork<R>> {
        let entry = self.entries.get_mut(key)?;
        let memory = &entry.memory;
        let redundant = |batch: &mut Box<R::Batch>| rules.is_redundant(key, memory, batch);
        if entry.pending.take_if(redundant).is_some() {
            entry.phase = EntryPhase::Idle;
            return None;
        }
        entry.phase = EntryPhase::Working;
        Some(StartedWork {
            epoch: self.epoch,
            memory: std::mem::take(&mut entry.memory),
            batch: entry.pending.take().map(|batch| *batch).unwrap_or_default(),
        })
    }

    /// A worker has ended.
    pub fn finished(
        &mut self,
        rules: &R,
        effects: &mut impl QueueEffects<R::Key, Timer = T>,
        finished: FinishedWork<R>,
        now: PauseReading,
    ) {
        self.follow_pauses(rules, effects, now);
        let FinishedWork {
            epoch,
            key,
            memory,
            next,
        } = finished;
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        entry.memory = memory;
        if next != NextCall::Forget && (self.paused || epoch != self.epoch) {
            rules.drop_plan(&mut entry.memory);
            entry.phase = EntryPhase::Idle;
            if entry.pending.is_some() && !self.paused {
                entry.phase = EntryPhase::Queued;
                effects.ready(key);
            } else if entry.pending.is_none() && rules.is_gone(&entry.memory) {
                table::remove(&mut self.entries, &key);
            }
            return;
        }
        if planted!(PendingItemDropped) {
            entry.pending = None;
        }
        entry.phase = match next {
            NextCall::NotBefore(delay) => {
                effects.plan(key, next_sleep(delay));
                EntryPhase::Held
            }
            NextCall::AwaitChange | NextCall::After(_) | NextCall::Forget
                if entry.pending.is_some() =>
            {
                effects.ready(key);
                EntryPhase::Queued
            }
            NextCall::After(delay) => EntryPhase::Sleeping(effects.plan(key, next_sleep(delay))),
            NextCall::AwaitChange => EntryPhase::Idle,
            NextCall::Forget => {
                table::remove(&mut self.entries, &key);
                return;
            }
        };
    }
}

// === impl QueueEntry ===

impl<R: QueueRules, T> Default for QueueEntry<R, T> {
    fn default() -> Self {
        Self {
            phase: EntryPhase::Idle,
            memory: R::Memory::default(),
            pending: None,
        }
    }
}
