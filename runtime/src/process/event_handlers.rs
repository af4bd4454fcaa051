//! Calls event handlers for the events of a batch, and again for events at which they failed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::{Reason, Subject as Matched};
use kopf_core::handler::HandlerSpec;
use kopf_core::machine::object::EventPatch;
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, error};

use super::ObjectHandling;
use super::batch::WaitingEvents;
use super::failed_event_calls::{FailedEventCall, FailedEventCalls};
use super::kind::EventHandlerRef;
use crate::context::event::EventInputs;
use crate::context::filter::FilterOccasion;
use crate::coordination::pause::LeaseEnded;
use crate::events::span;
use crate::process::execute::report::{self, FailureDescription};
use crate::watch::WatchEventType;

/// The delay instead of one that is longer than time lasts.
const LONGEST_DELAY: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A call of an event handler for one event.
struct EventCall<'a> {
    spec: &'a Arc<HandlerSpec>,
    handler: EventHandlerRef<'a>,
    event_type: WatchEventType,
    object: &'a Arc<Value>,
    text: &'a Arc<RawValue>,
    /// The attempts so far.
    record: Record,
}

/// The patches so far, and the newest state that handlers were called for.
#[derive(Default)]
struct CollectedPatches {
    patch: ObjectPatch,
    known: Option<Arc<Value>>,
}

impl ObjectHandling<'_> {
    /// Calls the handlers of all events until the operator pauses; returns their patches as one,
    /// nothing if the operator's lease has ended. The error says that a deleted object cannot be
    /// read.
    pub(super) async fn call_event_handlers(
        &self,
        batch: Option<&WaitingEvents>,
        failed: &mut FailedEventCalls,
    ) -> Result<Option<EventPatch>, String> {
        let mut patches = CollectedPatches::default();
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
            let Some(text) = &watch_event.text else {
                continue;
            };
            patches.known = Some(Arc::clone(&object));
            let occasion = FilterOccasion::Event(watch_event.event_type);
            let matched = Matched::object(ObjectView::new(&object)).with_context(&occasion);
            for spec in self.kind.registry().event_handlers(&matched) {
                let Some(handler) = self.kind.event_function(&spec) else {
                    continue;
                };
                if !self.pause_gate.is_running() {
                    return Ok(patches.into_patch());
                }
                let call = EventCall {
                    spec: &spec,
                    handler,
                    event_type: watch_event.event_type,
                    object: &object,
                    text: &text.text,
                    record: Record::begin(Reason::Noop, Timestamp::now()),
                };
                let called = self.call_event_handler(call, &mut patches, failed).await;
                if let Err(LeaseEnded) = called {
                    return Ok(None);
                }
            }
        }
        if let Err(LeaseEnded) = self.repeat_failed_calls(&mut patches, failed).await {
            return Ok(None);
        }
        Ok(patches.into_patch())
    }

    /// Calls handlers again for the events at which they failed.
    async fn repeat_failed_calls(
        &self,
        patches: &mut CollectedPatches,
        failed: &mut FailedEventCalls,
    ) -> Result<(), LeaseEnded> {
        // A handler that fails again is not called twice, even if it asks for no delay.
        let now = Instant::now();
        while self.pause_gate.is_running()
            && let Some(repeated) = failed.take_due(now)
        {
            let Some(handler) = self.kind.event_function(&repeated.spec) else {
                continue;
            };
            let Ok(object) = self.kind.api().read(&repeated.text) else {
                continue;
            };
            let object = Arc::new(object);
            patches.known.get_or_insert_with(|| Arc::clone(&object));
            let call = EventCall {
                spec: &repeated.spec,
                handler,
                event_type: repeated.event_type,
                object: &object,
                text: &repeated.text,
                record: repeated.record,
            };
            self.call_event_handler(call, patches, failed).await?;
        }
        Ok(())
    }

    /// Calls one handler, adds its patch to the others, and plans its repetition.
    async fn call_event_handler(
        &self,
        call: EventCall<'_>,
        patches: &mut CollectedPatches,
        failed: &mut FailedEventCalls,
    ) -> Result<(), LeaseEnded> {
        let EventCall {
            spec,
            handler,
            record,
            ..
        } = &call;
        failed.forget(spec);
        let begun = Timestamp::now();
        report::report_begin(spec, record.retries);
        let inputs = EventInputs {
            raw: Arc::clone(call.object),
            scope: self.handler_scope(handler.memos),
            event_type: call.event_type,
            handler: spec.id.clone(),
            param: handler.param.clone(),
            retry: record.retries,
            started: record.started,
            runtime: record.runtime(begun),
        };
        let limit = spec.policy.timeout;
        let limit = limit.map(|timeout| timeout.saturating_sub(inputs.runtime));
        let attempt = handler
            .function
            .call(inputs, limit)
            .instrument(span::handler(spec.id.as_str(), record.retries));
        let measured = handler.metrics.begin(record.retries);
        let journal = &self.services.journal;
        let journaled = journal.call_begun(&self.subject.journaled(), spec, record.retries);
        let mut attempt = self.pause_gate.while_leading(attempt).await?;
        measured.end(attempt.end.counted());
        journaled.end(attempt.end.counted().text());
        let result = attempt.effects.result.take();
        if call.event_type != WatchEventType::Deleted {
            patches.patch.absorb(attempt.effects.patch.into_writes());
        }
        let outcome = attempt.end.into_outcome(result, Reason::Noop, &spec.policy);
        match outcome {
            Outcome::Success(Value::Null) | Outcome::Waiting { .. } => {}
            Outcome::Success(result) => patches.patch.store_result(spec.id.as_str(), &result),
            Outcome::Error(failure) => {
                self.event_handler_failed(&call, &failure, failed);
            }
        }
        Ok(())
    }

    /// Logs a failure, and plans the repetition of the call if the handler's options ask for it.
    ///
    /// Event handlers post no events, as in Kopf.
    fn event_handler_failed(
        &self,
        call: &EventCall<'_>,
        failure: &HandlerFailure,
        failed: &mut FailedEventCalls,
    ) {
        let (spec, now) = (call.spec, Timestamp::now());
        let default_backoff = self.settings.execution.default_backoff;
        let is_repeated = spec.policy.retries != Some(1);
        let is_limit = matches!(failure, HandlerFailure::Exhausted(_));
        let outcome = Outcome::Error(failure.clone());
        let consequence =
            Consequence::of(outcome, &spec.policy, default_backoff, &call.record, now);
        let record = consequence.apply(&call.record, now);
        let description = FailureDescription {
            policy: &spec.policy,
            consequence: &consequence,
            // Without repetitions, the limit of one call is not worth a word.
            record: Some(&record).filter(|_| is_repeated || is_limit),
            default_backoff,
            now,
        };
        error!("Handler '{}' {}", spec.id, description.describe(failure));
        if let Consequence::Retry { delay, .. } = consequence {
            let now = Instant::now();
            let due = now.checked_add(delay.unwrap_or_default());
            failed.push(FailedEventCall {
                spec: Arc::clone(spec),
                event_type: call.event_type,
                text: Arc::clone(call.text),
                record,
                due: due.unwrap_or(now + LONGEST_DELAY),
                _reserved: self.budget.reserve_beyond(call.text.get().len()),
            });
        }
    }
}

// === impl CollectedPatches ===

impl CollectedPatches {
    fn into_patch(self) -> Option<EventPatch> {
        let Self { patch, known } = self;
        known.map(|known| EventPatch { known, patch })
    }
}
