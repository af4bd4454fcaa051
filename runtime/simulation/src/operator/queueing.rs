//! The queue of an operator, and the objects that wait in it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::machine::memory::ObjectMemory;
use kopf_core::queue::{QueueEffects, QueueRules};
use kopf_core::watch::batch::EventBatch;
use serde_json::Value;

use super::key::SimulatedKey;

/// The numbers of timers of the queue begin here.
const FIRST_TIMER: u64 = 1 << 40;

/// The states that objects which wait for a retry may keep, all together.
pub(crate) const MOST_KEPT_STATES: usize = 1;

/// Counts the states that waiting objects keep: each has a clone of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptStates(Rc<()>);

/// The state of an object whose turn is due later.
#[derive(Debug)]
pub(crate) enum KeptObject {
    State(
        Arc<Value>,
        #[expect(dead_code, reason = "counts")] KeptStates,
    ),
    /// The next call reads the object instead.
    Unread,
}

/// The rules of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedRules {
    pub(crate) needs_each_event: bool,
}

/// The backlog and the planned calls.
#[derive(Debug, Default)]
pub(crate) struct WaitingKeys {
    pub(crate) ready: VecDeque<Arc<SimulatedKey>>,
    planned: BTreeMap<u64, Arc<SimulatedKey>>,
    new: Vec<(u64, Duration)>,
    numbers: u64,
}

// === impl KeptStates ===

impl KeptStates {
    pub(crate) fn count(&self) -> usize {
        Rc::strong_count(&self.0) - 1
    }

    /// The form in which a state is kept.
    pub(crate) fn keep(&self, state: Arc<Value>) -> KeptObject {
        let has_room = self.count() < MOST_KEPT_STATES || planted!(SleepingStatesUnlimited);
        match has_room {
            true => KeptObject::State(state, self.clone()),
            false => KeptObject::Unread,
        }
    }
}

// === impl SimulatedRules ===

impl QueueRules for SimulatedRules {
    type Key = Arc<SimulatedKey>;
    type Batch = EventBatch<Arc<Value>>;
    type Memory = ObjectMemory<KeptObject>;

    fn survives_pause(&self, batch: &Self::Batch) -> bool {
        batch.survives_pause()
    }

    fn drop_plan(&self, memory: &mut Self::Memory) {
        memory.drop_plan();
    }

    fn is_gone(&self, _: &Self::Memory) -> bool {
        false
    }

    fn is_redundant(&self, _: &Self::Key, memory: &Self::Memory, batch: &Self::Batch) -> bool {
        memory.is_redundant(&batch.summary(), self.needs_each_event)
    }
}

// === impl WaitingKeys ===

impl WaitingKeys {
    /// Whether no object is handled now or later.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.planned.is_empty()
    }

    /// The object whose planned call is due.
    pub(crate) fn expired(&mut self, timer: u64) -> Option<Arc<SimulatedKey>> {
        self.planned.remove(&timer)
    }

    /// The timers that were planned since the last call.
    pub(crate) fn take_planned(&mut self) -> Vec<(u64, Duration)> {
        std::mem::take(&mut self.new)
    }
}

impl QueueEffects<Arc<SimulatedKey>> for WaitingKeys {
    type Timer = u64;

    fn ready(&mut self, key: Arc<SimulatedKey>) {
        self.ready.push_back(key);
    }

    fn clear_ready(&mut self) {
        self.ready.clear();
    }

    fn plan(&mut self, key: Arc<SimulatedKey>, delay: Duration) -> u64 {
        self.numbers += 1;
        let timer = FIRST_TIMER + self.numbers;
        self.planned.insert(timer, key);
        self.new.push((timer, delay));
        timer
    }

    fn cancel(&mut self, timer: &u64) {
        self.planned.remove(timer);
    }

    fn cancel_all(&mut self) {
        self.planned.clear();
    }
}
