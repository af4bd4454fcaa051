//! The context of timers, which look after an object from time to time.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::selection::DiscoveredResource;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::background::{BackgroundInputs, background_context};
use super::change::HandlerEffects;
use crate::context::hierarchy::{self, Adoption, Child};
use crate::context::recorder::reporting;
use crate::context::stop::StopSignal;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::handler::memo::{self, Memo};
use crate::handler::patch::Patch;
use crate::index::{Index, IndexView};

/// One tick of a timer of an object.
pub struct TimerContext<K> {
    text: Arc<RawValue>,
    /// DecodedObject when it is asked for: most ticks of most timers find nothing to do.
    object: OnceLock<K>,
    inputs: BackgroundInputs,
    pub(crate) effects: HandlerEffects,
}

impl<K: DeserializeOwned> TimerContext<K> {
    pub(crate) fn new(inputs: BackgroundInputs) -> Result<Self, serde_json::Error> {
        let live = &inputs.object.live;
        let snapshot = live.snapshot();
        let object = if snapshot.fits {
            OnceLock::new()
        } else {
            let object: K = serde_json::from_str(snapshot.text.get())?;
            live.found_fitting(snapshot.generation);
            OnceLock::from(object)
        };
        Ok(Self {
            text: snapshot.text,
            object,
            inputs,
            effects: HandlerEffects::default(),
        })
    }

    /// The object as it was when the tick began.
    pub fn object(&self) -> &K {
        self.object.get_or_init(|| {
            serde_json::from_str(self.text.get()).expect("the same text was decoded before")
        })
    }
}

impl<K> TimerContext<K> {
    /// The object as the server sent it, as it is now.
    pub fn raw(&self) -> Value {
        self.inputs.object.newest()
    }
}

background_context!(TimerContext);
