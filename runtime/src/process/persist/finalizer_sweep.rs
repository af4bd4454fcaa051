//! Removes our finalizer from objects that an earlier version of the operator has left with it.
//!
//! Objects that the selectors of the watch exclude could never be deleted if they have our
//! finalizer: no handler needs it any more, and no stream sends their events.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::machine::request::OnForbidden;
use kopf_core::machine::write::{OnConflict, ReadBack, WriteResult, WriteRules};
use kopf_core::object::patch::ObjectPatch;
use kopf_core::object::{ObjectView, finalizer};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{info, warn};

use super::object_writer::ObjectWriter;
use crate::client::backoff::Backoff;
use crate::client::requests::{self, KindApi};
use crate::coordination::pause::PauseGate;
use crate::watch::{KindIndex, ObjectKey};

const PAGE: u32 = 500;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The objects to check, and the finalizer to remove.
pub(crate) struct FinalizerSweep {
    pub(crate) api: KindApi,
    pub(crate) kind: KindIndex,
    pub(crate) namespace: Option<String>,
    pub(crate) pause_gate: PauseGate,
    pub(crate) finalizer: String,
}

// === impl FinalizerSweep ===

impl FinalizerSweep {
    /// Lists the metadata of all objects once, and removes the finalizer where it is.
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
            pause_gate: &self.pause_gate,
            stop: None,
            origin: Instant::now(),
        };
        let rules = WriteRules {
            // Only the metadata is written.
            status_endpoint: false,
            on_conflict: OnConflict::Repeat,
            on_forbidden: OnForbidden::RetryForMinute {
                ends_at_stop: false,
            },
            read_back: ReadBack::Always,
        };
        let mut patch = ObjectPatch::new();
        let name = self.finalizer.clone();
        patch.edit(move |body| finalizer::remove(body, &name));
        // If the lease ends, the next leader checks again.
        let known = Arc::new(object);
        match writer.write(&known, patch, rules).await {
            Ok(WriteResult::LeaseEnded) => {}
            Ok(_) => info!(object = %key, "the finalizer is removed: no handler needs it any more"),
            Err(rejected) => warn!(object = %key, "the finalizer cannot be removed: {rejected}"),
        }
    }
}
