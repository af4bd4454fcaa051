//! Releases objects that only an earlier version of the operator would have held.
//!
//! Where selectors keep objects out of view, those among them that still carry our finalizer would
//! never go away: no handler of today needs it, and no stream brings them.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::object::patch::Patch;
use kopf_core::object::{ObjectView, finalizer};
use serde_json::Value;
use tracing::{info, warn};

use super::apply::{ObjectWriter, OnConflict, ReadBack, WriteResult, apply};
use crate::client::backoff::Backoff;
use crate::client::requests::{self, KindApi};
use crate::client::resource::StatusSubresource;
use crate::coordination::pause::PauseGate;
use crate::watch::{KindIndex, ObjectKey};

const PAGE: u32 = 500;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Where to look for objects that are held for nothing, and by what.
pub(crate) struct FinalizerSweep {
    pub(crate) api: KindApi,
    pub(crate) kind: KindIndex,
    pub(crate) namespace: Option<String>,
    pub(crate) pause_gate: PauseGate,
    pub(crate) finalizer: String,
}

// === impl FinalizerSweep ===

impl FinalizerSweep {
    /// Looks at all objects once, at nothing but their metadata.
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut next = None;
        loop {
            self.pause_gate.running().await;
            let page = self
                .api
                .list_metadata_page(self.namespace.as_deref(), PAGE, next.clone());
            match page.await {
                Ok(page) => {
                    backoff.reset();
                    for object in page.items {
                        self.release(object).await;
                    }
                    if page.next.is_none() {
                        return;
                    }
                    next = page.next;
                }
                Err(error) => {
                    if matches!(error, requests::Error::Expired) {
                        next = None;
                    }
                    tokio::time::sleep(backoff.next(error.retry_after())).await;
                }
            }
        }
    }

    async fn release(&self, object: Value) {
        let view = ObjectView::new(&object);
        let held = finalizer::is_present(view, &self.finalizer);
        let (true, Some(key)) = (held, ObjectKey::of(self.kind, view)) else {
            return;
        };
        let writer = ObjectWriter {
            api: &self.api,
            key: &key,
            // Only the metadata is written.
            status: StatusSubresource::Absent,
            pause_gate: &self.pause_gate,
        };
        let mut patch = Patch::new();
        let name = self.finalizer.clone();
        patch.edit(move |body| finalizer::remove(body, &name));
        // Whoever leads next looks again.
        let known = Arc::new(object);
        match apply(&writer, &known, patch, OnConflict::Repeat, ReadBack::Always).await {
            Ok(WriteResult::LeaseEnded) => {}
            Ok(_) => info!(object = %key, "released: no handler needs the finalizer any more"),
            Err(rejected) => warn!(object = %key, "the finalizer cannot be removed: {rejected}"),
        }
    }
}
