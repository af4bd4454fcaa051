//! One call of `reconcile`.

use std::sync::Arc;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::machine::answer::Answer;
use kopf_core::machine::object::{ObjectInput, ReconcileAttempt, ReconcileResult};
use kopf_core::machine::request::{ObjectRequest, PatchContent};
use kopf_core::object::condition::{ConditionStatus, StatusCondition};
use kopf_core::object::finalizer;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::outcome::{HandlerFailure, Outcome};
use serde_json::Value;
use tracing::{Instrument as _, warn};

use super::ObjectHandling;
use crate::children::owner::{CallSummary, OwnerChildren};
use crate::context::reconcile::ReconcileInputs;
use crate::coordination::pause::LeaseEnded;
use crate::events::log_layer::LogPoster;
use crate::events::posting::EventSeverity;
use crate::events::span;
use crate::process::execute::report;

/// The condition that says whether all children are as `reconcile` wants them.
const CONDITION: &str = "ChildrenApplied";

impl ObjectHandling<'_> {
    /// Calls `reconcile`; returns also the children that it applied, for the deletion of others.
    pub(super) async fn call_reconcile(
        &self,
        call: ReconcileAttempt<'_>,
    ) -> (ObjectInput, Option<Arc<OwnerChildren>>) {
        let ReconcileAttempt {
            input,
            spec,
            attempt,
            ..
        } = call;
        let Some(handler) = self.kind.reconcile_function(spec) else {
            warn!("Handler '{}' has no function", spec.id);
            return (ObjectInput::NoFunction, None);
        };
        if let Err(failed) = self.find_adopted(&call).await {
            return (ObjectInput::ReconcileCalled(failed), None);
        }
        let name = &self.kind.persistence().finalizer;
        let children = Arc::new(OwnerChildren::new(
            Arc::clone(self.children),
            Arc::clone(&self.kind.related().owned),
            Arc::clone(self.key),
            Arc::clone(&input.body),
            Box::from(&*self.kind.spec().plural),
            finalizer::is_present(input.view(), name),
        ));
        report::report_begin(spec, attempt.retry);
        let inputs = ReconcileInputs {
            raw: Arc::clone(&input.body),
            scope: self.handler_scope(handler.memos),
            reasons: match children.shows_earlier_call() {
                true => call.reasons.clone().not_new(),
                false => call.reasons.clone(),
            },
            children: Arc::clone(&children),
            handler: spec.id.clone(),
            param: handler.param.clone(),
            retry: attempt.retry,
            started: attempt.started,
            runtime: attempt.runtime,
        };
        let span = span::handler(spec.id.as_str(), attempt.retry);
        let log_poster = inputs.scope.log_poster();
        let called = handler.function.call(inputs, attempt.time_left);
        let called = LogPoster::scope(log_poster, called).instrument(span);
        let measured = handler.metrics.begin(attempt.retry);
        let Ok(mut made) = self.pause_gate.while_leading(called).await else {
            return (ObjectInput::LeaseEnded, None);
        };
        measured.end(made.end.counted());
        let result = made.effects.result.take();
        let outcome = made.end.into_outcome(result, Reason::Noop, &spec.policy);
        let mut writes = made.effects.patch.into_writes();
        let result = {
            let summary = children.call();
            self.report_problems(&summary, &input.body, &mut writes);
            ReconcileResult {
                outcome,
                writes,
                again: summary.again,
                out_of_reach: summary.out_of_reach,
                needs_finalizer: summary.needs_finalizer,
                applied: children.applied_kinds(&summary),
            }
        };
        (ObjectInput::ReconcileCalled(result), Some(children))
    }

    /// Finds children without our labels, of kinds that no complete call has covered.
    async fn find_adopted(&self, call: &ReconcileAttempt<'_>) -> Result<(), ReconcileResult> {
        let owned = self.kind.related().owned.iter();
        let uncovered = owned.filter(|kind| {
            let is_recorded = call.covered.contains(&kind.record_id);
            !is_recorded && !self.children.has_applied(self.key, kind)
        });
        let uncovered: Vec<_> = uncovered.cloned().collect();
        if uncovered.is_empty() {
            return Ok(());
        }
        let epoch = self.pause_gate.epoch();
        let found = self.children.find_adopted(self.key, &uncovered, epoch);
        found.await.map_err(|error| ReconcileResult {
            outcome: Outcome::Error(HandlerFailure::Other {
                message: format!("children of this object cannot be listed: {error}"),
            }),
            writes: ObjectPatch::new(),
            again: None,
            out_of_reach: false,
            needs_finalizer: false,
            applied: Vec::new(),
        })
    }

    /// Posts what keeps children from being applied, and writes it as a condition.
    fn report_problems(&self, summary: &CallSummary, object: &Value, writes: &mut ObjectPatch) {
        for problem in &summary.problems {
            warn!("{}", problem.message);
            if let Some(poster) = &self.services.poster {
                let severity = EventSeverity::Warning;
                poster.post(&self.subject, &severity, problem.reason, &problem.message);
            }
        }
        let conditions = &object["status"]["conditions"];
        let reported = conditions.as_array().into_iter().flatten();
        let mut reported = reported.filter(|it| it["type"] == CONDITION);
        let is_false = reported.any(|it| it["status"] == "False");
        let condition = match summary.problems.first() {
            Some(problem) => StatusCondition {
                condition_type: CONDITION.to_owned(),
                status: ConditionStatus::False,
                reason: problem.reason.to_owned(),
                message: problem.message.clone(),
                observed_generation: None,
            },
            None if is_false && !summary.needs_finalizer => StatusCondition {
                condition_type: CONDITION.to_owned(),
                status: ConditionStatus::True,
                reason: "Applied".to_owned(),
                message: "all children are applied".to_owned(),
                observed_generation: None,
            },
            None => return,
        };
        let is_kept = !self.kind.related().prunes_conditions();
        if is_kept && (conditions.is_null() || conditions.is_array()) {
            let now = Timestamp::now();
            writes.edit(move |object| condition.set_in(object, now));
        }
    }

    /// Notes that the schema has no conditions, if the API server did not keep ours.
    pub(super) fn note_unkept_conditions(&self, request: &ObjectRequest<'_>, answer: &Answer) {
        let related = self.kind.related();
        let ObjectRequest::Patch {
            content: PatchContent::Json(patch),
            ..
        } = request
        else {
            return;
        };
        if let Answer::Object(object) = answer
            && related.reconcile.is_some()
            && object["status"]["conditions"].is_null()
            && patch.to_string().contains(CONDITION)
        {
            related.note_pruned_conditions();
        }
    }

    /// Deletes the children that the call did not apply.
    pub(super) async fn prune(&self, children: Option<&OwnerChildren>) -> ObjectInput {
        let Some(children) = children else {
            return ObjectInput::Pruned(Ok(()));
        };
        if !self.pause_gate.is_running() {
            return ObjectInput::LeaseEnded;
        }
        match self.pause_gate.while_leading(children.prune()).await {
            Ok(pruned) => ObjectInput::Pruned(pruned),
            Err(LeaseEnded) => ObjectInput::LeaseEnded,
        }
    }
}
