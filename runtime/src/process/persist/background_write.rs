//! The object of a daemon or timer: its newest state, and writes to it.

use std::sync::Arc;

use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::apply::{ReadBack, WriteRejected, WriteResult, apply};
use super::object_writer::{ObjectWriter, OnConflict, OnForbidden};
use crate::client::requests::KindApi;
use crate::client::resource::StatusSubresource;
use crate::client::resource_version::ResourceVersion;
use crate::coordination::pause::PauseGate;
use crate::watch::ObjectKey;
use crate::watch::latest::LatestState;

/// An object as its daemons and timers read and write it.
#[derive(Clone)]
pub(crate) struct BackgroundObject {
    pub(crate) api: Arc<KindApi>,
    pub(crate) key: Arc<ObjectKey>,
    pub(crate) status: StatusSubresource,
    pub(crate) latest: Arc<LatestState>,
    pub(crate) pause_gate: PauseGate,
}

impl BackgroundObject {
    /// Writes a patch; nothing if the object is gone.
    pub(crate) async fn write(&self, patch: ObjectPatch) -> Result<(), WriteRejected> {
        if patch.is_empty() {
            return Ok(());
        }
        // The future is large and seldom needed: boxed, it keeps that of the caller small.
        Box::pin(self.write_patch(patch)).await
    }

    async fn write_patch(&self, patch: ObjectPatch) -> Result<(), WriteRejected> {
        let known = Arc::new(self.newest());
        let writer = ObjectWriter {
            api: &self.api,
            key: &self.key,
            status: self.status,
            pause_gate: &self.pause_gate,
            on_forbidden: OnForbidden::Retry(None),
        };
        match apply(&writer, &known, patch, OnConflict::Repeat, ReadBack::Always).await? {
            WriteResult::Written(newer) | WriteResult::Stripped(newer, _) => {
                update_latest(&self.latest, &newer)
            }
            WriteResult::Unchanged
            | WriteResult::AsExpected(_)
            | WriteResult::Outdated(_)
            | WriteResult::Gone
            | WriteResult::LeaseEnded => {}
        }
        Ok(())
    }

    /// The newest state, parsed.
    pub(crate) fn newest(&self) -> Value {
        let text = self.latest.snapshot().text;
        serde_json::from_str(text.get()).expect("the text of a state is JSON")
    }
}

/// Makes an answer of the API server the newest state, unless it is older.
pub(crate) fn update_latest(latest: &LatestState, newer: &Value) {
    let (text, version) = parts(newer);
    latest.update(text, version);
}

/// Makes an answer of the API server the newest state, even if it is older.
pub(crate) fn replace_latest(latest: &LatestState, former: &Value) {
    let (text, version) = parts(former);
    latest.replace(text, version);
}

fn parts(object: &Value) -> (Arc<RawValue>, Option<ResourceVersion>) {
    let version = ObjectView::new(object).resource_version();
    let text = to_raw_value(object).expect("JSON can be written as JSON");
    (text.into(), version.map(ResourceVersion::new))
}
