//! The state of an operator that the program around it can observe.

use crate::coordination::pause::{PauseGate, PauseSwitch};
use crate::index::list_gate::ListGate;
use crate::task::heartbeat::Heartbeats;

/// The observable state of an operator, before it starts and while it runs; cheap to clone.
#[derive(Clone)]
pub(super) struct OperatorState {
    pub(super) switch: PauseSwitch,
    pub(super) pause_gate: PauseGate,
    pub(super) heartbeats: Heartbeats,
    /// Open when every handled kind was listed.
    pub(super) listed: ListGate,
    /// Open when every indexed kind was listed and is in the indices.
    pub(super) indexed: ListGate,
    /// The same in a pause, for webhooks.
    pub(super) indexed_in_pause: ListGate,
}

impl Default for OperatorState {
    fn default() -> Self {
        let (switch, pause_gate) = PauseSwitch::new();
        Self {
            switch,
            pause_gate,
            heartbeats: Heartbeats::default(),
            listed: ListGate::new(),
            indexed: ListGate::new(),
            indexed_in_pause: ListGate::new(),
        }
    }
}
