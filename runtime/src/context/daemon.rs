//! The context of daemons, which accompany an object as long as it is there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::selection::DiscoveredResource;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::warn;

use super::background::{BackgroundInputs, background_context};
use super::change::HandlerEffects;
use crate::context::hierarchy::{self, Adoption, Child};
use crate::context::recorder::reporting;
use crate::context::stop::StopSignal;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::handler::memo::{self, Memo};
use crate::handler::patch::Patch;
use crate::index::{Index, IndexView};
use crate::watch::latest::Snapshot;

/// One object, as the daemon beside it sees it: always as it is now.
///
/// The runtime owns it and the daemon borrows it: what the daemon put into the patch survives an
/// error, a panic and an interruption.
pub struct DaemonContext<K> {
    inputs: BackgroundInputs,
    pub(crate) effects: HandlerEffects,
    /// The newest state that could be decoded; the lock is only held for looking and decoding.
    decoded: Mutex<DecodedObject<K>>,
}

struct DecodedObject<K> {
    object: Arc<K>,
    generation: u32,
}

impl<K: DeserializeOwned> DaemonContext<K> {
    pub(crate) fn new(inputs: BackgroundInputs) -> Result<Self, serde_json::Error> {
        let snapshot = inputs.object.live.snapshot();
        let decoded = DecodedObject {
            object: Arc::new(decode(&snapshot)?),
            generation: snapshot.generation,
        };
        Ok(Self {
            inputs,
            effects: HandlerEffects::default(),
            decoded: Mutex::new(decoded),
        })
    }

    /// The object as it is now; ask again to see it as it is then.
    ///
    /// A state that does not fit the type is passed over.
    pub fn object(&self) -> Arc<K> {
        let snapshot = self.inputs.object.live.snapshot();
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if decoded.generation != snapshot.generation {
            decoded.generation = snapshot.generation;
            match decode(&snapshot) {
                Ok(object) => decoded.object = Arc::new(object),
                Err(error) => warn!("the object does not fit its type any more: {error}"),
            }
        }
        Arc::clone(&decoded.object)
    }

    /// Waits until the object is another one than [`object`](Self::object) showed last.
    pub async fn changed(&self) -> Arc<K> {
        let seen = {
            let decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
            decoded.generation
        };
        self.inputs.object.live.after(seen).await;
        self.object()
    }
}

impl<K> DaemonContext<K> {
    /// The object as the server sent it, as it is now.
    pub fn raw(&self) -> Value {
        self.inputs.object.newest()
    }
}

background_context!(DaemonContext);

fn decode<K: DeserializeOwned>(snapshot: &Snapshot) -> Result<K, serde_json::Error> {
    serde_json::from_str(snapshot.text.get())
}
