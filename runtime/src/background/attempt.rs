//! One attempt of a daemon or timer: the call, the write of its patch, the report of its outcome.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use kopf_core::background::stopping::StopReason;
use kopf_core::cause::Reason;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use tracing::{Instrument as _, info};

use super::BackgroundServices;
use super::declaration::RegisteredBackground;
use super::instance::Instance;
use crate::context::background::BackgroundInputs;
use crate::context::change::HandlerEffects;
use crate::events::log_layer::LogPoster;
use crate::events::object_ref::ObjectRef;
use crate::process::execute::handler_scope::HandlerScope;
use crate::process::execute::invoke::CallEnd;
use crate::process::execute::report;
use crate::process::persist::background_write::BackgroundObject;
use crate::watch::latest::LatestState;

/// A daemon or timer with the services and the object that its calls need.
#[derive(Clone)]
pub(super) struct InstanceRunner {
    pub(super) services: Arc<BackgroundServices>,
    pub(super) instance: Arc<Instance>,
    pub(super) latest: Arc<LatestState>,
}

/// The end of an attempt, as far as it decides about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// It was the last one, and succeeded or failed with an error that is ignored.
    Succeeded,
    /// It was the last one, and failed for good.
    Failed,
    /// Another attempt follows after this time.
    Retry(Duration),
    /// The call was interrupted, as the daemon or timer had to stop.
    Interrupted,
}

impl InstanceRunner {
    /// Makes an attempt; `alive` is held by all work that outlives the call.
    pub(super) async fn attempt(
        &self,
        record: &mut Record,
        alive: Arc<dyn Send + Sync>,
    ) -> AttemptEnd {
        let scope = self.handler_scope();
        let id = self.instance.handler.spec.id.as_str();
        let handler = scope.subject.handler_span(id, record.retries);
        // The future is large: boxed, it is not moved.
        Box::pin(self.attempt_within(record, scope, alive))
            .instrument(handler)
            .await
    }

    async fn attempt_within(
        &self,
        record: &mut Record,
        scope: HandlerScope,
        alive: Arc<dyn Send + Sync>,
    ) -> AttemptEnd {
        if !self.wait_until_running().await {
            return AttemptEnd::Interrupted;
        }
        let spec = &self.instance.handler.spec;
        let (mut effects, end) = match spec.policy.allow(record.retries, self.runtime(record)) {
            Err(limit) => {
                self.instance.handler.metrics.exhausted();
                (HandlerEffects::default(), Err(limit))
            }
            Ok(()) => {
                report::report_begin(spec, record.retries);
                let measured = self.instance.handler.metrics.begin(record.retries);
                let journal = &self.services.operator.journal;
                let subject = scope.subject.journaled();
                let journaled = journal.call_begun(&subject, spec, record.retries);
                let pause_gate = &self.services.operator.pause_gate;
                let call = self.call(self.facts(record, &scope, alive), record);
                let Ok(attempt) = pause_gate.while_leading(call).await else {
                    return AttemptEnd::Interrupted;
                };
                measured.end(attempt.end.counted());
                journaled.end(attempt.end.counted().text());
                (attempt.effects, Ok(attempt.end))
            }
        };
        let interrupted = matches!(end, Ok(CallEnd::Interrupted));
        let result = effects.result.take();
        let mut outcome = match end {
            Ok(end) => end.into_outcome(result, Reason::Noop, &spec.policy),
            Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
        };
        let mut patch = effects.patch.into_writes();
        if let Outcome::Success(result) = &outcome {
            patch.store_result(spec.id.as_str(), result);
        }
        if !patch.is_empty()
            && let Err(error) = self.background_object().write(patch).await
        {
            let message = error.of_handler();
            outcome = Outcome::Error(HandlerFailure::Other { message });
        }
        if interrupted {
            info!(
                "{} is interrupted: {}",
                self.instance,
                self.instance.signal.reasons()
            );
            return AttemptEnd::Interrupted;
        }
        self.conclude(record, &outcome, &scope)
    }

    /// Waits out a pause of the operator; false if the daemon or timer is to stop meanwhile.
    async fn wait_until_running(&self) -> bool {
        let pause_gate = &self.services.operator.pause_gate;
        if pause_gate.is_running() {
            return true;
        }
        tokio::select! {
            _ = pause_gate.running() => true,
            // A pause stops daemons and timers a moment after it has begun.
            () = self.instance.signal.until(|reasons| !reasons.is_empty()) => false,
        }
    }

    /// Enters an outcome into the record and reports it.
    fn conclude(&self, record: &mut Record, outcome: &Outcome, scope: &HandlerScope) -> AttemptEnd {
        let spec = &self.instance.handler.spec;
        let now = Timestamp::now();
        let default_backoff = self.services.settings.execution.default_backoff;
        let consequence =
            Consequence::of(outcome.clone(), &spec.policy, default_backoff, record, now);
        *record = consequence.apply(record, now);
        let finished = report::FinishedCall {
            spec,
            outcome,
            consequence: &consequence,
            record: Some(record),
            default_backoff,
            now,
        };
        report::report_call(&finished, scope);
        match consequence {
            Consequence::Succeeded(_) | Consequence::Ignored { .. } => AttemptEnd::Succeeded,
            Consequence::Failed { .. } => AttemptEnd::Failed,
            Consequence::Retry { delay, .. } | Consequence::Waiting { delay } => {
                AttemptEnd::Retry(delay.unwrap_or_default())
            }
        }
    }

    async fn call(
        &self,
        facts: BackgroundInputs,
        record: &Record,
    ) -> crate::registration::function::AttemptResult {
        let policy = &self.instance.handler.spec.policy;
        let limit = policy
            .timeout
            .map(|timeout| timeout.saturating_sub(self.runtime(record)));
        let log_poster = facts.scope.log_poster();
        match &self.instance.handler.registered {
            RegisteredBackground::Daemon(daemon) => {
                let instance = Arc::clone(&self.instance);
                let interrupted = async move {
                    instance
                        .signal
                        .until(|reasons| reasons.contains(StopReason::Cancelled))
                        .await;
                };
                let call = daemon.function.call(facts, interrupted.boxed(), limit);
                LogPoster::scope(log_poster, call).await
            }
            RegisteredBackground::Timer(timer) => {
                LogPoster::scope(log_poster, timer.function.call(facts, limit)).await
            }
        }
    }

    fn facts(
        &self,
        record: &Record,
        scope: &HandlerScope,
        alive: Arc<dyn Send + Sync>,
    ) -> BackgroundInputs {
        BackgroundInputs {
            scope: scope.clone(),
            object: self.background_object(),
            stop: self.instance.stop(),
            alive,
            handler: self.instance.handler.spec.id.clone(),
            param: self.instance.handler.param.clone(),
            retry: record.retries,
            started: record.started,
            runtime: self.runtime(record),
        }
    }

    fn background_object(&self) -> BackgroundObject {
        let handler = &self.instance.handler;
        BackgroundObject {
            api: Arc::clone(&handler.api),
            key: Arc::clone(&self.instance.key),
            status: handler.resource.status,
            latest: Arc::clone(&self.latest),
            pause_gate: self.services.operator.pause_gate.clone(),
        }
    }

    fn handler_scope(&self) -> HandlerScope {
        let (handler, key) = (&self.instance.handler, &self.instance.key);
        HandlerScope {
            services: Arc::clone(&self.services.operator),
            subject: ObjectRef::handled(Arc::clone(handler.api.name()), Arc::clone(key)),
            memo: handler.memos.as_ref().map(|memos| memos.find(&key.uid)),
            resource: handler.api.description().get(),
        }
    }

    fn runtime(&self, record: &Record) -> Duration {
        record.runtime(Timestamp::now())
    }
}
