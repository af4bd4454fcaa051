//! The object of a daemon or timer: its newest state, and writes to it.

use std::sync::Arc;

use kopf_core::machine::request::OnForbidden;
use kopf_core::machine::write::{self, OnConflict, ReadBack, WriteResult, WriteRules};
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::object::resource_version::ResourceVersion;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::object_writer::ObjectWriter;
use crate::client::requests::KindApi;
use crate::client::resource::StatusSubresource;
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
    pub(crate) async fn write(&self, patch: ObjectPatch) -> Result<(), write::Error> {
        if patch.is_empty() {
            return Ok(());
        }
        // The future is large and seldom needed: boxed, it keeps that of the caller small.
        Box::pin(self.write_patch(patch)).await
    }

    async fn write_patch(&self, patch: ObjectPatch) -> Result<(), write::Error> {
        let known = Arc::new(self.newest());
        let writer = ObjectWriter {
            api: &self.api,
            key: &self.key,
            pause_gate: &self.pause_gate,
            stop: None,
            origin: Instant::now(),
        };
        let rules = WriteRules {
            status_endpoint: self.status == StatusSubresource::Present,
            on_conflict: OnConflict::Repeat,
            on_forbidden: OnForbidden::RetryForMinute {
                ends_at_stop: false,
            },
            read_back: ReadBack::Always,
        };
        match writer.write(&known, patch, rules).await? {
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
