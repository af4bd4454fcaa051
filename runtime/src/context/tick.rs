//! The context of timers, which look after an object from time to time.

use std::time::Duration;

use jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::background::{BackgroundFacts, background_context};
use super::change::Effects;
use crate::engine::posting::EventSeverity;
use crate::error::{HandlerError, HandlerResult};
use crate::hierarchy::{self, Adoption, Child};
use crate::index::{Index, IndexView};
use crate::memo::{self, Memo};
use crate::patch::Patch;
use crate::stop::StopSignal;

/// One tick of a timer of an object.
pub struct Tick<K> {
    object: K,
    facts: BackgroundFacts,
    pub(crate) effects: Effects,
}

impl<K: DeserializeOwned> Tick<K> {
    pub(crate) fn new(facts: BackgroundFacts) -> Result<Self, serde_json::Error> {
        let text = facts.object.live.snapshot().text;
        Ok(Self {
            object: serde_json::from_str(text.get())?,
            facts,
            effects: Effects::default(),
        })
    }
}

impl<K> Tick<K> {
    /// The object as it was when the tick began.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the server sent it, as it is now.
    pub fn raw(&self) -> Value {
        self.facts.object.newest()
    }
}

background_context!(Tick);
