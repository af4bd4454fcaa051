//! Calls event handlers for the events of a batch.

use std::sync::Arc;

use kopf_core::cause::Subject as Matched;
use kopf_core::handler::HandlerSpec;
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use serde_json::Value;
use tracing::{Instrument as _, debug, error};

use super::ObjectHandling;
use super::batch::WaitingEvents;
use super::kind::EventHandlerRef;
use crate::coordination::pause::LeaseEnded;
use crate::events::span;
use crate::process::execute::report;
use crate::watch::WatchEventType;

/// A call of an event handler for one event.
struct EventCall<'a> {
    spec: &'a HandlerSpec,
    handler: EventHandlerRef<'a>,
    event_type: WatchEventType,
    object: &'a Arc<Value>,
}

impl ObjectHandling<'_> {
    /// Calls the handlers of all events until the operator pauses; returns their patches as one,
    /// nothing if the operator's lease has ended. The error says that a deleted object cannot be
    /// read.
    pub(super) async fn call_event_handlers(
        &self,
        batch: Option<&WaitingEvents>,
    ) -> Result<ObjectPatch, String> {
        let mut patch = ObjectPatch::new();
        for watch_event in batch.into_iter().flat_map(WaitingEvents::all) {
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
                    return Ok(patch);
                }
                let call = EventCall {
                    spec: &spec,
                    handler,
                    event_type: watch_event.event_type,
                    object: &object,
                };
                if let Err(LeaseEnded) = self.call_event_handler(call, &mut patch).await {
                    return Ok(ObjectPatch::new());
                }
            }
        }
        Ok(patch)
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
        report::report_begin(spec, 0);
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
}
