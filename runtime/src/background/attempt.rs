//! One attempt of a daemon or timer: called, delivered, judged, told.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use kopf_core::background::stopping::StopReason;
use kopf_core::cause::Reason;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use tracing::{Instrument as _, info};

use super::Shared;
use super::declaration::Work;
use super::instance::Run;
use crate::context::background::BackgroundInputs;
use crate::context::change::HandlerEffects;
use crate::events::log_layer::LogPoster;
use crate::events::object_ref::ObjectRef;
use crate::process::execute::invoke::CallEnd;
use crate::process::execute::report;
use crate::process::execute::scope::HandlerScope;
use crate::process::persist::background_write::Delivery;
use crate::watch::latest::LatestState;

/// A daemon or timer with its surroundings.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) shared: Arc<Shared>,
    pub(super) run: Arc<Run>,
    pub(super) live: Arc<LatestState>,
}

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was the last one, and a good one.
    Well,
    /// It was the last one, and a bad one.
    Badly,
    /// Another one follows after this time.
    Again(Duration),
    /// It was interrupted, for it had to stop.
    Interrupted,
}

impl Site {
    /// Makes an attempt; `alive` is kept by all work that it leaves behind.
    pub(super) async fn attempt(&self, record: &mut Record, alive: Arc<dyn Send + Sync>) -> Ended {
        let scope = self.surroundings();
        let id = self.run.duty.spec.id.as_str();
        let handler = scope.subject.handler_span(id, record.retries);
        // Large enough for moves to be felt: it stays where it is made.
        Box::pin(self.attempt_within(record, scope, alive))
            .instrument(handler)
            .await
    }

    async fn attempt_within(
        &self,
        record: &mut Record,
        scope: HandlerScope,
        alive: Arc<dyn Send + Sync>,
    ) -> Ended {
        if !self.shared.services.pause_gate.is_running() {
            // Whoever is to stop for a pause is told so in a moment.
            tokio::select! {
                _ = self.shared.services.pause_gate.running() => {}
                () = self.run.signal.until(|reasons| !reasons.is_empty()) => {
                    return Ended::Interrupted;
                }
            }
        }
        let spec = &self.run.duty.spec;
        let (mut effects, verdict) = match spec.policy.allow(record.retries, self.runtime(record)) {
            Err(limit) => {
                self.run.duty.metrics.exhausted();
                (HandlerEffects::default(), Err(limit))
            }
            Ok(()) => {
                let measured = self.run.duty.metrics.begin(record.retries);
                let pause_gate = &self.shared.services.pause_gate;
                let call = self.call(self.facts(record, &scope, alive), record);
                let Ok(attempt) = pause_gate.while_leading(call).await else {
                    return Ended::Interrupted;
                };
                measured.end(attempt.end.counted());
                (attempt.effects, Ok(attempt.end))
            }
        };
        let interrupted = matches!(verdict, Ok(CallEnd::Interrupted));
        let result = effects.result.take();
        let mut outcome = match verdict {
            Ok(verdict) => verdict.into_outcome(result, Reason::Noop, &spec.policy),
            Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
        };
        let mut patch = effects.patch.into_writes();
        if let Outcome::Success(result) = &outcome {
            patch.deliver(spec.id.as_str(), result);
        }
        if !patch.is_empty()
            && let Err(rejected) = self.delivery().deliver(patch).await
        {
            let message = format!("the server does not accept what it wants written: {rejected}");
            outcome = Outcome::Error(HandlerFailure::Other { message });
        }
        if interrupted {
            info!("{} is interrupted: {}", self.run, self.run.signal.reasons());
            return Ended::Interrupted;
        }
        let now = Timestamp::now();
        let default_backoff = self.shared.settings.execution.default_backoff;
        let consequence =
            Consequence::of(outcome.clone(), &spec.policy, default_backoff, record, now);
        *record = consequence.apply(record, now);
        let finished = report::Finished {
            spec,
            outcome: &outcome,
            consequence: &consequence,
            record: Some(record),
            default_backoff,
            now,
        };
        report::tell(&finished, &scope);
        match consequence {
            Consequence::Succeeded(_) | Consequence::Ignored { .. } => Ended::Well,
            Consequence::Failed { .. } => Ended::Badly,
            Consequence::Retry { delay, .. } | Consequence::Waiting { delay } => {
                Ended::Again(delay.unwrap_or_default())
            }
        }
    }

    async fn call(
        &self,
        facts: BackgroundInputs,
        record: &Record,
    ) -> crate::registration::function::AttemptResult {
        let policy = &self.run.duty.spec.policy;
        let limit = policy
            .timeout
            .map(|timeout| timeout.saturating_sub(self.runtime(record)));
        let log_poster = facts.scope.log_poster();
        match &self.run.duty.work {
            Work::Daemon(daemon) => {
                let run = Arc::clone(&self.run);
                let interrupted = async move {
                    run.signal
                        .until(|reasons| reasons.contains(StopReason::Cancelled))
                        .await;
                };
                let call = daemon.function.call(facts, interrupted.boxed(), limit);
                LogPoster::scope(log_poster, call).await
            }
            Work::Timer(timer) => {
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
            object: self.delivery(),
            stop: self.run.stop(),
            alive,
            handler: self.run.duty.spec.id.clone(),
            param: self.run.duty.param.clone(),
            retry: record.retries,
            started: record.started,
            runtime: self.runtime(record),
        }
    }

    fn delivery(&self) -> Delivery {
        let duty = &self.run.duty;
        Delivery {
            api: Arc::clone(&duty.api),
            key: Arc::clone(&self.run.key),
            status: duty.resource.status,
            live: Arc::clone(&self.live),
            pause_gate: self.shared.services.pause_gate.clone(),
        }
    }

    fn surroundings(&self) -> HandlerScope {
        let (duty, key) = (&self.run.duty, &self.run.key);
        HandlerScope {
            services: Arc::clone(&self.shared.services),
            subject: ObjectRef::handled(Arc::clone(duty.api.name()), Arc::clone(key)),
            memo: duty.memos.as_ref().map(|memos| memos.find(&key.uid)),
            resource: duty.api.description().get(),
        }
    }

    fn runtime(&self, record: &Record) -> Duration {
        record.runtime(Timestamp::now())
    }
}
