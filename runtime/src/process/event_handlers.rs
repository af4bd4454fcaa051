//! Calls event handlers for the events of a batch, and writes their patches as one.

use std::sync::Arc;

use kopf_core::cause::Subject as Matched;
use kopf_core::handler::HandlerSpec;
use kopf_core::machine::request::OnForbidden;
use kopf_core::machine::write::{OnConflict, ReadBack, WriteResult, WriteRules};
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use serde_json::Value;
use tracing::{Instrument as _, debug, error, warn};

use super::batch::{BatchMode, EventBatch, QueuedEvent};
use super::kind::EventHandlerRef;
use super::memory::Memory;
use super::{Error, ObjectHandling};
use crate::coordination::pause::LeaseEnded;
use crate::events::span;
use crate::watch::WatchEventType;

/// A call of an event handler for one event.
struct EventCall<'a> {
    spec: &'a HandlerSpec,
    handler: EventHandlerRef<'a>,
    event_type: WatchEventType,
    object: &'a Arc<Value>,
}

impl ObjectHandling<'_> {
    pub(super) async fn call_event_handlers(
        &self,
        memory: &mut Memory,
        current: &mut Option<Arc<Value>>,
        batch: &EventBatch,
    ) -> Result<(), Error> {
        if self.kind.batch_mode() == BatchMode::NewestOnly {
            return Ok(());
        }
        let Some(patch) = self.event_patch(batch).await? else {
            return Ok(());
        };
        match batch.newest() {
            Some(newest) if newest.event_type != WatchEventType::Deleted && !patch.is_empty() => {
                self.write_event_patch(memory, current, newest, patch).await
            }
            _ => Ok(()),
        }
    }

    /// Calls the handlers of all events until the operator pauses; returns their patches as one,
    /// or none if the operator's lease has ended.
    async fn event_patch(&self, batch: &EventBatch) -> Result<Option<ObjectPatch>, Error> {
        let mut patch = ObjectPatch::new();
        for watch_event in batch.all() {
            let object = match self.read(watch_event) {
                Ok(Some(object)) => object,
                Ok(None) => continue,
                // If it is the newest state, it is reported before its handlers are called.
                Err(error) if watch_event.event_type != WatchEventType::Deleted => {
                    debug!("an event is left out: {error}");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let matched = Matched::object(ObjectView::new(&object));
            for spec in self.kind.registry().event_handlers(&matched) {
                let Some(handler) = self.kind.event_function(&spec) else {
                    continue;
                };
                if !self.pause_gate.is_running() {
                    return Ok(Some(patch));
                }
                let call = EventCall {
                    spec: &spec,
                    handler,
                    event_type: watch_event.event_type,
                    object: &object,
                };
                if let Err(LeaseEnded) = self.call_event_handler(call, &mut patch).await {
                    return Ok(None);
                }
            }
        }
        Ok(Some(patch))
    }

    /// Calls one handler, and adds its patch to the others.
    async fn call_event_handler(
        &self,
        call: EventCall<'_>,
        patch: &mut ObjectPatch,
    ) -> Result<(), LeaseEnded> {
        let EventCall {
            spec,
            handler,
            event_type,
            object,
        } = call;
        let scope = self.handler_scope(handler.memos);
        let raw = Arc::clone(object);
        let call = handler
            .function
            .call(scope, raw, event_type, spec.policy.timeout)
            .instrument(span::handler(spec.id.as_str(), 0));
        let measured = handler.metrics.begin(0);
        let mut attempt = self.pause_gate.while_leading(call).await?;
        measured.end(attempt.end.counted());
        let result = attempt.effects.result.take();
        patch.absorb(attempt.effects.patch.into_writes());
        match (attempt.end.ignored_failure(), result) {
            (Some(failure), _) => error!("Handler '{}' {failure}", spec.id),
            (None, Some(result)) => patch.store_result(spec.id.as_str(), &result),
            (None, None) => {}
        }
        Ok(())
    }

    async fn write_event_patch(
        &self,
        memory: &mut Memory,
        current: &mut Option<Arc<Value>>,
        newest: &QueuedEvent,
        patch: ObjectPatch,
    ) -> Result<(), Error> {
        let known = match current {
            Some(current) => Some(Arc::clone(current)),
            None => self.read(newest)?,
        };
        let Some(known) = known else {
            return Ok(());
        };
        let rules = WriteRules {
            status_endpoint: self.has_status_endpoint(),
            on_conflict: OnConflict::Repeat,
            on_forbidden: OnForbidden::RetryForMinute { ends_at_stop: true },
            read_back: ReadBack::Always,
        };
        match self.writer().write(&known, patch, rules).await {
            Ok(WriteResult::Written(newer) | WriteResult::Stripped(newer, _)) => {
                self.wrote(memory, current, newer);
            }
            Ok(
                WriteResult::Unchanged
                | WriteResult::AsExpected(_)
                | WriteResult::Outdated(_)
                | WriteResult::Gone
                | WriteResult::LeaseEnded,
            ) => {}
            Err(rejected) => {
                warn!("the API server rejects the patch of an event handler: {rejected}");
                self.post_error("Patching", &rejected.to_string());
            }
        }
        Ok(())
    }
}
