//! The calls of `reconcile`: children are applied one after the other, then others are deleted.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use kopf_core::children::desired::{ChildType, DesiredChild};
use kopf_core::children::prune::{AfterDeletion, after_read, after_refusal};
use kopf_core::children::reasons::{ReconcileReason, ReconcileReasons, RelatedObject};
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::machine::object::{ObjectInput, ReconcileAttempt, ReconcileResult};
use kopf_core::machine::reconcile::{ReconcileRules, StatusChanges};
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::outcome::{HandlerFailure, Outcome};
use kopf_core::watch::WatchEventType;
use kopf_core::watch::known_objects::KeyedEvent;
use serde_json::{Value, json};

use super::children::{digest, is_own};
use super::setup::CallEnding;
use super::{CallPurpose, OperatorFact, SimulatedKey, SimulatedOperator, uptime};
use crate::server::{AnswerBody, ApiAnswer, DeletePreconditions, Endpoint, SimulatedPatch, Verb};
use crate::world::CallOutcome;

/// The name of the operators in the labels of children.
pub(super) const OPERATOR_NAME: &str = "operator";

/// The kind of children.
pub(crate) const CHILD_KIND: &str = "Part";

/// A call of `reconcile` that waits for the answer to a request.
pub(super) struct SimulatedReconcile {
    /// The children that are not applied yet.
    wanted: VecDeque<DesiredChild>,
    applied: Vec<Arc<str>>,
    outcome: Outcome,
    sent: ChildRequest,
}

/// The request that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChildRequest {
    Nothing,
    Get,
    Create,
    Patch,
}

/// Deletions that wait for the answer to a request.
pub(super) struct SimulatedPrune {
    /// Their names and uids; the first one is being deleted.
    left: VecDeque<(Arc<str>, &'static str)>,
    /// Whether the first one is being read, as the answer to its deletion was unclear.
    is_read: bool,
    result: Result<(), String>,
}

/// The declaration of `reconcile`.
pub(super) fn reconcile_rules() -> &'static ReconcileRules {
    static RULES: OnceLock<ReconcileRules> = OnceLock::new();
    RULES.get_or_init(|| ReconcileRules {
        spec: Arc::new(HandlerSpec::new("reconcile", Trigger::Reconcile)),
        interval: None,
        status: StatusChanges::Ignored,
        kinds: vec![HandlerId::new("kopf.test/v1/Part")],
    })
}

/// The names of the children that an object wants, and their content.
pub(crate) fn wanted_children(object: &Value) -> Vec<(String, Value)> {
    let name = ObjectView::new(object).name().unwrap_or_default();
    let count = object["spec"]["a"].as_u64().unwrap_or_default();
    let names = (0..count).map(|at| format!("{name}-{at}"));
    let content = object["spec"]["b"].as_u64().unwrap_or_default();
    names.map(|name| (name, content.into())).collect()
}

impl SimulatedOperator {
    /// Whether the operator has children.
    pub(super) fn has_children(&self) -> bool {
        self.options.child_kind.is_some()
    }

    /// A child has appeared, changed or gone.
    pub(super) fn child_received(&mut self, (key, state): KeyedEvent<SimulatedKey>) {
        let owner = match state.event_type {
            WatchEventType::Deleted => self.children.remove(&key),
            _ => self.children.observe(&key, &state.text),
        };
        self.call_owner(owner, &key.name);
    }

    /// A list of children may have ended: those that only an answer has brought, and that are not
    /// in it, are gone. The stream has never known them, and sends no deletion.
    pub(super) fn children_listed(&mut self) {
        let Some(version) = self.child_stream.ended_list.take() else {
            return;
        };
        let listed: BTreeSet<&str> = self.child_stream.uids().collect();
        let version = ResourceVersion::new(&version);
        for key in self.children.missing(&listed, &version) {
            let owner = self.children.remove(&key);
            self.call_owner(owner, &key.name);
        }
        self.children.miss_in_flight();
    }

    fn call_owner(&mut self, owner: Option<Arc<SimulatedKey>>, child: &Arc<str>) {
        let Some(owner) = owner else {
            return;
        };
        let mut reasons = ReconcileReasons::default();
        reasons.add(ReconcileReason::ChildChanged(RelatedObject {
            kind: CHILD_KIND.to_owned(),
            namespace: Some(super::NAMESPACE.to_owned()),
            name: child.to_string(),
        }));
        let (rules, now) = (self.rules(), self.reading());
        self.queue
            .push(&rules, &mut self.waiting, owner, now, |_, batch| {
                batch.requeue_for(reasons)
            });
    }

    /// Begins a call; `None` as its end means that it waits for an answer.
    pub(super) fn begin_reconcile(
        &mut self,
        key: &Arc<SimulatedKey>,
        attempt: &ReconcileAttempt<'_>,
    ) -> Result<ObjectInput, Box<SimulatedReconcile>> {
        let number = self.number();
        let body = &attempt.input.body;
        self.children.show_owner(key, body);
        self.report(OperatorFact::ReconcileBegun {
            uid: key.uid,
            state: Arc::new(attempt.input.change.new.as_value().clone()),
            wanted: wanted_children(body).into_iter().map(|it| it.0).collect(),
        });
        let child_type = ChildType {
            api_version: "kopf.test/v1",
            kind: CHILD_KIND,
            namespaced: true,
        };
        let desired = |(name, value): (String, Value)| {
            let body = json!({"metadata": {"name": name}, "spec": {"value": value}});
            DesiredChild::new(body, child_type, attempt.input.view(), OPERATOR_NAME)
        };
        let wanted = wanted_children(body).into_iter().map(desired);
        let mut wanted: VecDeque<DesiredChild> = wanted.filter_map(Result::ok).collect();
        let words = (self.options.run << 32) + number;
        let ending =
            match self
                .options
                .behaviour
                .ending(key.uid, "reconcile", words, attempt.attempt.retry)
            {
                CallEnding::Delivers => CallEnding::Succeeds,
                CallEnding::FailsForGood => CallEnding::RetriesLater,
                ending => ending,
            };
        if ending != CallEnding::Succeeds {
            // It fails after some of its children.
            let made = usize::try_from(number).unwrap_or_default() % (wanted.len() + 1);
            wanted.truncate(made);
        }
        let mut call = Box::new(SimulatedReconcile {
            wanted,
            applied: Vec::new(),
            outcome: ending.outcome(number),
            sent: ChildRequest::Nothing,
        });
        match self.go_on_with_reconcile(key, &mut call, None) {
            Some(end) => Ok(end),
            None => Err(call),
        }
    }

    /// Goes on with a call up to its next request, or to its end.
    pub(super) fn go_on_with_reconcile(
        &mut self,
        key: &Arc<SimulatedKey>,
        call: &mut SimulatedReconcile,
        answer: Option<CallOutcome>,
    ) -> Option<ObjectInput> {
        let mut answer = answer;
        loop {
            let Some(desired) = call.wanted.front() else {
                let outcome = call.outcome.clone();
                return Some(self.end_reconcile(key, call, outcome));
            };
            let name: Arc<str> = desired.name.as_str().into();
            let verb = match (call.sent, answer.take()) {
                (ChildRequest::Nothing, _) if self.children.is_in_sync(key, desired) => {
                    call.applied.push(name);
                    call.wanted.pop_front();
                    continue;
                }
                (ChildRequest::Nothing, _) => match self.children.child(key, &name) {
                    Some(known) => {
                        let (uid, is_taken) = (known.uid, known.is_taken(desired));
                        self.patch(key, desired, uid, is_taken)
                    }
                    None => Ok(get(&name)),
                },
                (ChildRequest::Get, Some(CallOutcome::Answered(answer))) => match &answer {
                    ApiAnswer {
                        code: 200,
                        body: AnswerBody::Object(object),
                    } if is_own(object, key, desired) => {
                        let uid = ObjectView::new(object).uid().unwrap_or_default();
                        self.patch(key, desired, uid, digest(object).is_some())
                    }
                    ApiAnswer { code: 404, .. } => Ok(Verb::Create {
                        body: desired.body.clone(),
                    }),
                    _ => return Some(self.fail_reconcile(key, call, &name)),
                },
                (
                    ChildRequest::Create | ChildRequest::Patch,
                    Some(CallOutcome::Answered(ApiAnswer {
                        code: 200 | 201,
                        body: AnswerBody::Object(object),
                    })),
                ) => {
                    let owner = self.children.end_apply(key, &name, Some(&object));
                    self.call_owner(owner, &name);
                    call.applied.push(name);
                    call.wanted.pop_front();
                    call.sent = ChildRequest::Nothing;
                    continue;
                }
                (ChildRequest::Patch, Some(CallOutcome::Answered(answer)))
                    if matches!(answer.code, 404 | 409) =>
                {
                    let owner = self.children.end_apply(key, &name, None);
                    self.call_owner(owner, &name);
                    Ok(get(&name))
                }
                _ => return Some(self.fail_reconcile(key, call, &name)),
            };
            let verb = match verb {
                Ok(verb) => verb,
                Err(wait) => return Some(self.wait_for_takeback(key, call, wait)),
            };
            call.sent = match &verb {
                Verb::Create { .. } => ChildRequest::Create,
                Verb::Patch { .. } => ChildRequest::Patch,
                _ => ChildRequest::Get,
            };
            if call.sent != ChildRequest::Get {
                self.children.begin_apply(&name);
            }
            self.send_child_request(key, &name, verb);
            return None;
        }
    }

    fn send_child_request(&mut self, key: &Arc<SimulatedKey>, name: &Arc<str>, verb: Verb) {
        let Some(kind) = self.options.child_kind else {
            return;
        };
        if verb.is_write() {
            self.report(OperatorFact::ChildSent {
                uid: key.uid,
                name: Arc::clone(name),
                deletes: matches!(verb, Verb::Delete { .. }),
            });
        }
        self.send(CallPurpose::Worker(Arc::clone(key)), kind, verb);
    }

    /// Applies a child that exists; fails with the time until it may be taken back.
    fn patch(
        &mut self,
        key: &SimulatedKey,
        desired: &DesiredChild,
        uid: &str,
        is_taken: bool,
    ) -> Result<Verb, Duration> {
        if is_taken {
            self.take_back(key, &desired.name.as_str().into())?;
        }
        // Another object of its name has another uid.
        let mut body = desired.body.clone();
        body["metadata"]["uid"] = uid.into();
        Ok(Verb::Patch {
            name: desired.name.as_str().into(),
            endpoint: Endpoint::Object,
            patch: SimulatedPatch::Merge(body),
        })
    }

    fn take_back(&mut self, key: &SimulatedKey, name: &Arc<str>) -> Result<(), Duration> {
        let now = uptime(self.clock);
        self.children.take_back(key, name, now)
    }

    /// Other clients change a child again and again: the call has failed.
    fn wait_for_takeback(
        &mut self,
        key: &Arc<SimulatedKey>,
        call: &mut SimulatedReconcile,
        wait: Duration,
    ) -> ObjectInput {
        let failure = HandlerFailure::Temporary {
            message: "other clients change it again and again".to_owned(),
            delay: Some(wait),
        };
        self.end_reconcile(key, call, Outcome::Error(failure))
    }

    /// A child cannot be applied: the call has failed.
    fn fail_reconcile(
        &mut self,
        key: &Arc<SimulatedKey>,
        call: &mut SimulatedReconcile,
        name: &Arc<str>,
    ) -> ObjectInput {
        let owner = self.children.end_apply(key, name, None);
        self.call_owner(owner, name);
        let message = format!("{name} cannot be applied");
        let outcome = Outcome::Error(HandlerFailure::Other { message });
        self.end_reconcile(key, call, outcome)
    }

    fn end_reconcile(
        &mut self,
        key: &Arc<SimulatedKey>,
        call: &mut SimulatedReconcile,
        outcome: Outcome,
    ) -> ObjectInput {
        let applied = match call.applied.is_empty() {
            true => Vec::new(),
            false => reconcile_rules().kinds.clone(),
        };
        self.children.called(key, std::mem::take(&mut call.applied));
        self.report(OperatorFact::ReconcileEnded {
            uid: key.uid,
            succeeded: matches!(outcome, Outcome::Success(_)),
        });
        ObjectInput::ReconcileCalled(ReconcileResult {
            outcome,
            writes: ObjectPatch::new(),
            again: None,
            out_of_reach: false,
            needs_finalizer: false,
            applied,
        })
    }

    /// A call is cut off: its application may have been executed.
    pub(super) fn cut_reconcile(&mut self, key: &SimulatedKey, call: &SimulatedReconcile) {
        if let Some(desired) = call.wanted.front() {
            let name: Arc<str> = desired.name.as_str().into();
            let owner = self.children.end_apply(key, &name, None);
            self.call_owner(owner, &name);
        }
    }

    /// Deletes the children that the last call has not applied.
    pub(super) fn begin_prune(
        &mut self,
        key: &Arc<SimulatedKey>,
    ) -> Result<ObjectInput, Box<SimulatedPrune>> {
        if !self.runs() {
            return Ok(ObjectInput::LeaseEnded);
        }
        let mut call = Box::new(SimulatedPrune {
            left: self.children.abandoned(key).into(),
            is_read: false,
            result: Ok(()),
        });
        match self.go_on_with_prune(key, &mut call, None) {
            Some(end) => Ok(end),
            None => Err(call),
        }
    }

    pub(super) fn go_on_with_prune(
        &mut self,
        key: &Arc<SimulatedKey>,
        call: &mut SimulatedPrune,
        answer: Option<CallOutcome>,
    ) -> Option<ObjectInput> {
        if let Some(answer) = answer
            && let Some((name, uid)) = call.left.pop_front()
        {
            let meaning = deletion_meaning(&answer, uid, call.is_read);
            call.is_read = meaning == Some(AfterDeletion::Unclear);
            match meaning {
                None => {}
                Some(AfterDeletion::Gone) => self.children.forget(&name, uid),
                Some(AfterDeletion::Unclear) => {
                    self.send_child_request(key, &name, get(&name));
                    call.left.push_front((name, uid));
                    return None;
                }
                Some(AfterDeletion::Failed) => {
                    self.children.set_pruned(&name, uid, false);
                    call.result = Err(format!("{name} cannot be deleted"));
                }
            }
        }
        while let Some((name, _)) = call.left.front().cloned()
            && !self.children.was_as_desired(&name)
            && self.take_back(key, &name).is_err()
        {
            call.left.pop_front();
            call.result = Err(format!("{name} is made again and again"));
        }
        let Some((name, uid)) = call.left.front().cloned() else {
            let result = std::mem::replace(&mut call.result, Ok(()));
            return Some(ObjectInput::Pruned(result));
        };
        self.children.set_pruned(&name, uid, true);
        let verb = Verb::Delete {
            name: Arc::clone(&name),
            preconditions: DeletePreconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            },
        };
        self.send_child_request(key, &name, verb);
        None
    }

    /// A deletion is cut off: it may have been executed.
    pub(super) fn cut_prune(&mut self, call: &SimulatedPrune) {
        if let Some((name, uid)) = call.left.front() {
            self.children.set_pruned(name, uid, false);
        }
    }
}

/// The meaning of an answer to the deletion of a child, or to the read after it; none if the API
/// server has accepted the deletion.
fn deletion_meaning(outcome: &CallOutcome, uid: &str, is_read: bool) -> Option<AfterDeletion> {
    let CallOutcome::Answered(answer) = outcome else {
        return Some(AfterDeletion::Failed);
    };
    match (is_read, answer.is_success()) {
        (false, true) => None,
        (false, false) => Some(after_refusal(answer.code)),
        (true, true) => {
            let found = answer.as_object().map(|it| ObjectView::new(it));
            Some(after_read(found.and_then(|it| it.uid()), uid))
        }
        (true, false) => Some(match answer.code {
            404 => after_read(None, uid),
            _ => AfterDeletion::Failed,
        }),
    }
}

fn get(name: &Arc<str>) -> Verb {
    Verb::Get {
        name: Arc::clone(name),
    }
}
