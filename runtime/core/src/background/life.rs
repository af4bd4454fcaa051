//! The life of one daemon or timer of one object, from its start to its end.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};

use super::{
    desired::{InstanceState, InstanceStep, ObjectLife, holds, step},
    stopping::{StopReason, StopReasons},
};

/// A daemon or timer that was started. One that is finished does not start again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceLife {
    /// It runs.
    Running {
        /// Whether it has ended by itself.
        finished: bool,
    },
    /// It still runs, but the operator no longer waits for it.
    Abandoned {
        /// Whether it has ended by itself.
        finished: bool,
    },
    /// Nothing of it runs any more.
    Ended {
        /// Whether it has ended by itself.
        finished: bool,
    },
}

/// The daemons and timers of one object, in the order of the kind's declarations.
pub trait ObjectBackground {
    /// The state of one of them.
    fn state(&self, at: usize) -> InstanceState;

    /// Starts it, or notes that it is to be started later.
    fn start(&mut self, at: usize);

    /// Sends it the stop signal.
    fn stop(&mut self, at: usize, reason: StopReason);
}

/// Permission to start daemons and timers.
#[derive(Debug)]
pub enum StartGate<K, S = RandomState> {
    /// They may start.
    Open,
    /// Nothing starts; these objects are requeued when the gate opens.
    Closed(HashSet<K, S>),
}

/// Starts and stops daemons and timers as the state of their object demands; `matches` says for
/// each of them whether its filters hold. Returns whether the object needs the finalizer.
pub fn reconcile(
    object: &mut impl ObjectBackground,
    matches: impl IntoIterator<Item = bool>,
    life: ObjectLife,
) -> bool {
    let mut held = false;
    for (at, matches) in matches.into_iter().enumerate() {
        match step(object.state(at), matches, life) {
            InstanceStep::Leave => {}
            InstanceStep::Start => object.start(at),
            InstanceStep::Stop(reason) => object.stop(at, reason),
        }
        held |= holds(object.state(at), matches, life);
    }
    held
}

// === impl InstanceLife ===

impl InstanceLife {
    /// One that has just started.
    #[must_use]
    pub fn begin() -> Self {
        Self::Running { finished: false }
    }

    /// Its state, with the reasons for which it is to stop.
    #[must_use]
    pub fn state(self, reasons: StopReasons) -> InstanceState {
        match self {
            Self::Running { .. } if reasons.is_empty() => InstanceState::Running,
            Self::Running { .. } => InstanceState::Stopping,
            Self::Abandoned { .. } => InstanceState::Abandoned,
            Self::Ended { finished: true } => InstanceState::Finished,
            Self::Ended { finished: false } => InstanceState::Absent,
        }
    }

    /// Whether nothing of it runs any more.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Ended { .. })
    }

    /// Whether the operator waits for its end.
    #[must_use]
    pub fn is_waited_for(self) -> bool {
        matches!(self, Self::Running { .. })
    }

    /// Whether it has ended by itself, and is not to be started again.
    #[must_use]
    pub fn is_finished(self) -> bool {
        match self {
            Self::Running { finished }
            | Self::Abandoned { finished }
            | Self::Ended { finished } => finished,
        }
    }

    /// Notes that it has ended by itself.
    pub fn mark_finished(&mut self) {
        match self {
            Self::Running { finished }
            | Self::Abandoned { finished }
            | Self::Ended { finished } => *finished = true,
        }
    }

    /// Notes that nothing of it runs any more; returns whether something did before.
    pub fn mark_ended(&mut self) -> bool {
        let finished = self.is_finished();
        let former = std::mem::replace(self, Self::Ended { finished });
        !former.has_ended()
    }

    /// Notes that the operator no longer waits for it.
    pub fn abandon(&mut self) {
        if let Self::Running { finished } = *self {
            *self = Self::Abandoned { finished };
        }
    }
}

// === impl StartGate ===

impl<K: Eq + Hash, S: BuildHasher + Default> StartGate<K, S> {
    /// Whether a daemon or timer of an object may start; otherwise the object waits.
    pub fn admits(&mut self, key: K) -> bool {
        match self {
            Self::Open => true,
            Self::Closed(waiting) => {
                waiting.insert(key);
                false
            }
        }
    }

    /// Closes the gate: these objects wait.
    pub fn close(&mut self, waiting: impl IntoIterator<Item = K>) {
        *self = Self::Closed(waiting.into_iter().collect());
    }

    /// Opens the gate; returns the objects that have waited.
    pub fn open(&mut self) -> HashSet<K, S> {
        match std::mem::replace(self, Self::Open) {
            Self::Open => HashSet::default(),
            Self::Closed(waiting) => waiting,
        }
    }
}
