//! One call of one change handler, and the report of its end.

use std::sync::Arc;

use jiff::Timestamp;
use kopf_core::handler::HandlerSpec;
use kopf_core::machine::object::{CallReport, HandlerCall, ObjectInput};
use kopf_core::object::path::FieldPath;
use kopf_core::turn::Turn;
use kopf_core::turn::tracker::HandlerAttempt;
use tracing::{Instrument as _, warn};

use super::ObjectHandling;
use super::kind::ChangeHandlerRef;
use crate::context::change::ChangeInputs;
use crate::coordination::pause::LeaseEnded;
use crate::events::log_layer::LogPoster;
use crate::events::span;
use crate::process::execute::report;

impl ObjectHandling<'_> {
    /// Calls a handler.
    pub(super) async fn call(
        &self,
        turn: &Turn,
        spec: &Arc<HandlerSpec>,
        attempt: HandlerAttempt,
    ) -> ObjectInput {
        let Some(handler) = self.kind.change_function(spec) else {
            warn!("Handler '{}' has no function", spec.id);
            return ObjectInput::NoFunction;
        };
        report::report_begin(spec, attempt.retry);
        let facts = self.facts(turn, spec, &handler, attempt);
        let span = span::handler(spec.id.as_str(), attempt.retry);
        let log_poster = facts.scope.log_poster();
        let call = handler.function.call(facts, attempt.time_left);
        let call = LogPoster::scope(log_poster, call).instrument(span);
        let measured = handler.metrics.begin(attempt.retry);
        let journal = &self.services.journal;
        let journaled = journal.call_begun(&self.subject.journaled(), spec, attempt.retry);
        let mut made = match self.pause_gate.while_leading(call).await {
            Ok(made) => made,
            Err(LeaseEnded) => return ObjectInput::LeaseEnded,
        };
        measured.end(made.end.counted());
        journaled.end(made.end.counted().text());
        let result = made.effects.result.take();
        ObjectInput::Called(HandlerCall {
            outcome: made.end.into_outcome(result, turn.reason(), &spec.policy),
            writes: made.effects.patch.into_writes(),
            subs: made.effects.subs,
        })
    }

    fn facts(
        &self,
        turn: &Turn,
        spec: &HandlerSpec,
        handler: &ChangeHandlerRef<'_>,
        attempt: HandlerAttempt,
    ) -> ChangeInputs {
        let input = turn.input().clone();
        let inputs = ChangeInputs {
            scope: self.handler_scope(handler.memos),
            execution: self.settings.execution.clone(),
            diff: Arc::new(input.change.diff.clone()),
            situation: input,
            subs: Arc::new(turn.sub(&spec.id, [], Timestamp::now())),
            handler: spec.id.clone(),
            field: FieldPath::root(),
            changing: spec.trigger.needs_change(),
            param: handler.param.clone(),
            retry: attempt.retry,
            started: attempt.started,
            runtime: attempt.runtime,
        };
        inputs.within_field_of(spec)
    }

    /// Reports how a call ended.
    pub(super) fn report_call(&self, call: &CallReport<'_>) {
        if call.exhausted
            && let Some(handler) = self.kind.change_function(call.spec)
        {
            handler.metrics.exhausted();
        }
        let finished = report::FinishedCall {
            spec: call.spec,
            outcome: call.outcome,
            consequence: call.consequence,
            record: call.record,
            default_backoff: self.settings.execution.default_backoff,
            now: call.at,
        };
        report::report_call(&finished, &self.handler_scope(None));
    }
}
