//! Calls handlers of children for what happened to them, and again for what they failed at.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::machine::object::EventPatch;
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Instrument as _, error};

use super::ObjectHandling;
use super::failed_child_calls::{FailedChildCall, FailedChildCalls};
use super::kind::KindChildHandler;
use crate::children::store::ChildEvent;
use crate::context::child::ChildChange;
use crate::context::event::EventInputs;
use crate::coordination::pause::LeaseEnded;
use crate::events::span;
use crate::process::execute::report::{self, FailureDescription};
use crate::watch::WatchEventType;

/// The delay instead of one that is longer than time lasts.
const LONGEST_DELAY: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A call of a handler of children.
struct ChildCall<'a> {
    handler: &'a KindChildHandler,
    owner: &'a Arc<Value>,
    child: &'a Arc<Value>,
    happened: &'a ChildEvent,
    /// The attempts so far.
    record: Record,
}

impl ObjectHandling<'_> {
    /// Adds the patches of handlers of children to those of event handlers.
    pub(super) async fn with_child_handlers(
        &self,
        called: Result<Option<EventPatch>, String>,
        failed: &mut FailedChildCalls,
    ) -> Result<Option<EventPatch>, String> {
        let patch = called?;
        let Ok(of_children) = self.call_child_handlers(failed).await else {
            return Ok(None);
        };
        Ok(match (patch, of_children) {
            (Some(mut patch), Some(of_children)) => {
                patch.patch.absorb(of_children.patch);
                Some(patch)
            }
            (patch, of_children) => patch.or(of_children),
        })
    }

    /// Calls the handlers of children for what happened to them since the last call.
    async fn call_child_handlers(
        &self,
        failed: &mut FailedChildCalls,
    ) -> Result<Option<EventPatch>, LeaseEnded> {
        let handlers = &self.kind.related().child_handlers;
        if handlers.is_empty() || !self.pause_gate.is_running() {
            return Ok(None);
        }
        let text = self.children.latest_owner(self.key);
        let owner = text.and_then(|text| self.kind.api().read(&text).ok());
        let Some(owner) = owner.map(Arc::new) else {
            failed.clear();
            return Ok(None);
        };
        let mut patch = ObjectPatch::new();
        for happened in self.children.take_news(self.key) {
            let Some(child) = read(&happened) else {
                continue;
            };
            let view = ObjectView::new(&child);
            let (api_version, kind) = (view.api_version(), view.kind());
            let fitting = handlers.iter().filter(|handler| {
                let name = &handler.registered.name;
                (Some(&*name.api_version), Some(&*name.kind)) == (api_version, kind)
            });
            for handler in fitting {
                let call = ChildCall {
                    handler,
                    owner: &owner,
                    child: &child,
                    happened: &happened,
                    record: Record::begin(Reason::Noop, Timestamp::now()),
                };
                patch.absorb(self.call_child_handler(call, failed).await?);
            }
        }
        patch.absorb(self.repeat_child_calls(&owner, failed).await?);
        let known = owner;
        Ok(Some(EventPatch { known, patch }).filter(|it| !it.patch.is_empty()))
    }

    /// Calls handlers again for what they failed at.
    async fn repeat_child_calls(
        &self,
        owner: &Arc<Value>,
        failed: &mut FailedChildCalls,
    ) -> Result<ObjectPatch, LeaseEnded> {
        let handlers = &self.kind.related().child_handlers;
        let mut patch = ObjectPatch::new();
        // A handler that fails again is not called twice, even if it asks for no delay.
        let now = Instant::now();
        while self.pause_gate.is_running()
            && let Some(repeated) = failed.take_due(now)
        {
            let mut handlers = handlers.iter();
            let handler = handlers.find(|it| it.registered.spec.id == repeated.spec.id);
            let (Some(handler), Some(child)) = (handler, read(&repeated.happened)) else {
                continue;
            };
            let call = ChildCall {
                handler,
                owner,
                child: &child,
                happened: &repeated.happened,
                record: repeated.record,
            };
            patch.absorb(self.call_child_handler(call, failed).await?);
        }
        Ok(patch)
    }

    /// Calls one handler, and plans its repetition if it fails.
    async fn call_child_handler(
        &self,
        call: ChildCall<'_>,
        failed: &mut FailedChildCalls,
    ) -> Result<ObjectPatch, LeaseEnded> {
        let ChildCall {
            handler,
            happened,
            record,
            ..
        } = &call;
        let registered = &handler.registered;
        let spec = &registered.spec;
        failed.forget(spec, &happened.uid);
        let runtime = record.runtime(Timestamp::now());
        report::report_begin(spec, record.retries);
        let inputs = EventInputs {
            raw: Arc::clone(call.owner),
            scope: self.handler_scope(handler.memos.as_deref()),
            event_type: WatchEventType::Modified,
            handler: spec.id.clone(),
            param: registered.param.clone(),
            retry: record.retries,
            started: record.started,
            runtime,
        };
        let change = match happened.deleted {
            true => ChildChange::Deleted,
            false => ChildChange::Applied,
        };
        let limit = spec.policy.timeout;
        let limit = limit.map(|timeout| timeout.saturating_sub(runtime));
        let attempt = registered
            .function
            .call(inputs, Arc::clone(call.child), change, limit)
            .instrument(span::handler(spec.id.as_str(), record.retries));
        let measured = handler.metrics.begin(record.retries);
        let mut made = self.pause_gate.while_leading(attempt).await?;
        measured.end(made.end.counted());
        let result = made.effects.result.take();
        let mut patch = made.effects.patch.into_writes();
        match made.end.into_outcome(result, Reason::Noop, &spec.policy) {
            Outcome::Success(result) if !result.is_null() => {
                patch.store_result(spec.id.as_str(), &result);
            }
            Outcome::Success(_) | Outcome::Waiting { .. } => {}
            Outcome::Error(failure) => self.child_handler_failed(&call, &failure, failed),
        }
        Ok(patch)
    }

    /// Logs a failure, and plans the repetition of the call.
    fn child_handler_failed(
        &self,
        call: &ChildCall<'_>,
        failure: &HandlerFailure,
        failed: &mut FailedChildCalls,
    ) {
        let (spec, now) = (&call.handler.registered.spec, Timestamp::now());
        let default_backoff = self.settings.execution.default_backoff;
        let outcome = Outcome::Error(failure.clone());
        let consequence =
            Consequence::of(outcome, &spec.policy, default_backoff, &call.record, now);
        let record = consequence.apply(&call.record, now);
        let description = FailureDescription {
            policy: &spec.policy,
            consequence: &consequence,
            record: Some(&record),
            default_backoff,
            now,
        };
        error!("Handler '{}' {}", spec.id, description.describe(failure));
        let Consequence::Retry { delay, .. } = consequence else {
            return;
        };
        let now = Instant::now();
        let due = now.checked_add(delay.unwrap_or_default());
        let has_room = failed.push(FailedChildCall {
            spec: Arc::clone(spec),
            happened: call.happened.clone(),
            record,
            due: due.unwrap_or(now + LONGEST_DELAY),
            _reserved: self.budget.reserve_beyond(call.happened.text.len()),
        });
        if !has_room {
            let id = &spec.id;
            error!("Handler '{id}' is not called again: it fails for too many children");
        }
    }
}

/// The child as JSON.
fn read(happened: &ChildEvent) -> Option<Arc<Value>> {
    serde_json::from_str(&happened.text).ok().map(Arc::new)
}
