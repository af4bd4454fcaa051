//! The context of daemons: tasks that run for as long as their object exists.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::warn;

use super::accessors::{
    adoption_accessors, attempt_accessors, event_accessors, existing_object_accessors,
    handler_accessors, object_accessors,
};
use super::background::{BackgroundInputs, background_context};
use super::change::HandlerEffects;
use super::draft::{DraftSlot, draft_accessors};
use crate::context::stop::StopSignal;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::watch::latest::ObjectSnapshot;

/// The context of a daemon: its object, always in the newest state.
///
/// The runtime owns it and the daemon borrows it: what the daemon put into the patch is written
/// even after an error, a panic or a cancellation.
pub struct DaemonContext<K> {
    inputs: BackgroundInputs,
    pub(crate) draft: DraftSlot<K>,
    pub(crate) effects: HandlerEffects,
    /// The newest state that could be decoded; the lock is only held to compare and decode.
    decoded: Mutex<DecodedObject<K>>,
}

struct DecodedObject<K> {
    object: Arc<K>,
    generation: u32,
}

impl<K: DeserializeOwned> DaemonContext<K> {
    pub(crate) fn new(inputs: BackgroundInputs) -> Result<Self, serde_json::Error> {
        let snapshot = inputs.object.latest.snapshot();
        let decoded = DecodedObject {
            object: Arc::new(decode(&snapshot)?),
            generation: snapshot.generation,
        };
        Ok(Self {
            inputs,
            draft: DraftSlot::default(),
            effects: HandlerEffects::default(),
            decoded: Mutex::new(decoded),
        })
    }

    /// The object as it is now. Call this again for its newer states.
    ///
    /// States that cannot be decoded as `K` are skipped.
    pub fn object(&self) -> Arc<K> {
        let snapshot = self.inputs.object.latest.snapshot();
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if decoded.generation != snapshot.generation {
            decoded.generation = snapshot.generation;
            match decode(&snapshot) {
                Ok(object) => decoded.object = Arc::new(object),
                Err(error) => warn!("the object cannot be decoded any more: {error}"),
            }
        }
        Arc::clone(&decoded.object)
    }

    /// Waits until the object differs from the state that [`object`](Self::object) returned last.
    pub async fn changed(&self) -> Arc<K> {
        let generation = {
            let decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
            decoded.generation
        };
        self.inputs.object.latest.after(generation).await;
        self.object()
    }
}

impl<K> DaemonContext<K> {
    /// The newest state of the object as the API server sent it.
    pub fn raw(&self) -> Value {
        self.inputs.object.newest()
    }
}

background_context!(DaemonContext);

fn decode<K: DeserializeOwned>(snapshot: &ObjectSnapshot) -> Result<K, serde_json::Error> {
    serde_json::from_str(snapshot.text.get())
}
