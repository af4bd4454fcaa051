//! The context of timers: functions that are called for their object in intervals.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::accessors::{
    adoption_accessors, attempt_accessors, event_accessors, existing_object_accessors,
    handler_accessors, object_accessors,
};
use super::background::{BackgroundInputs, background_context};
use super::change::HandlerEffects;
use super::draft::{DraftSlot, draft_accessors};
use crate::context::stop::StopSignal;
use crate::handler::error::{HandlerError, HandlerResult};

/// The context of a timer: one call for one object.
pub struct TimerContext<K> {
    text: Arc<RawValue>,
    /// Decoded on first use: most calls of most timers find nothing to do.
    object: OnceLock<K>,
    inputs: BackgroundInputs,
    pub(crate) draft: DraftSlot<K>,
    pub(crate) effects: HandlerEffects,
}

impl<K: DeserializeOwned> TimerContext<K> {
    pub(crate) fn new(inputs: BackgroundInputs) -> Result<Self, serde_json::Error> {
        let live = &inputs.object.latest;
        let snapshot = live.snapshot();
        let object = if snapshot.decodable {
            OnceLock::new()
        } else {
            let object: K = serde_json::from_str(snapshot.text.get())?;
            live.mark_decodable(snapshot.generation);
            OnceLock::from(object)
        };
        Ok(Self {
            text: snapshot.text,
            object,
            inputs,
            draft: DraftSlot::default(),
            effects: HandlerEffects::default(),
        })
    }

    /// The object as it was when this call began.
    pub fn object(&self) -> &K {
        self.object.get_or_init(|| {
            serde_json::from_str(self.text.get()).expect("the same text was decoded before")
        })
    }
}

impl<K> TimerContext<K> {
    /// The newest state of the object as the API server sent it.
    pub fn raw(&self) -> Value {
        self.inputs.object.newest()
    }
}

background_context!(TimerContext);
