//! The children of one owner during one call of `reconcile`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kopf_core::children::desired::{ChildType, DesiredChild};
use kopf_core::children::options::{Pruning, UpdateOrder};
use kopf_core::handler::HandlerId;
use kopf_core::object::ObjectView;
use kopf_core::readiness;
use serde_json::Value;

use super::apply::{ApplyEnd, ApplyFailure, ChildApplication};
use super::json::ChildJson;
use super::{ChildIdentity, Children, OwnedKind};
use crate::client::resource::KindName;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::watch::{KindIndex, ObjectKey};

/// The time until a child is looked at again that is being deleted unwatched.
const UNWATCHED_DELETION: Duration = Duration::from_secs(2);

/// The children of one owner during one call.
pub(crate) struct OwnerChildren {
    children: Arc<Children>,
    kinds: Arc<[OwnedKind]>,
    key: Arc<ObjectKey>,
    owner: Arc<Value>,
    /// The plural of the owner's kind.
    plural: Box<str>,
    /// Whether the owner has our finalizer.
    is_held: bool,
    mode: ApplyMode,
    call: Mutex<CallSummary>,
}

/// What becomes of an applied child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ApplyMode {
    /// It is sent to the API server, if it is not as it should be.
    Sent,
    /// It is only noted, for a unit test of the handler.
    Noted,
}

/// What one call did.
#[derive(Default)]
pub(crate) struct CallSummary {
    applied: Vec<ChildIdentity>,
    /// The kinds of which a child was changed.
    changed: Vec<KindIndex>,
    /// The kinds of which a child is not ready, or is being made anew.
    unready: Vec<KindIndex>,
    /// The time after which the call asked for another one.
    pub(crate) again: Option<Duration>,
    /// Whether it applied a child that Kubernetes does not delete together with its owner.
    pub(crate) out_of_reach: bool,
    /// Whether it could not apply such a child, as the owner lacks our finalizer.
    pub(crate) needs_finalizer: bool,
    /// The children that other clients keep from being applied.
    pub(crate) problems: Vec<ChildProblem>,
    /// The bodies of a unit test.
    pub(crate) noted: Vec<Value>,
}

/// A child that cannot be applied because of other clients.
#[derive(Debug, Clone)]
pub(crate) struct ChildProblem {
    /// The reason in one word.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

// === impl OwnerChildren ===

impl OwnerChildren {
    pub(crate) fn new(
        children: Arc<Children>,
        kinds: Arc<[OwnedKind]>,
        key: Arc<ObjectKey>,
        owner: Arc<Value>,
        plural: Box<str>,
        is_held: bool,
    ) -> Self {
        Self {
            children,
            kinds,
            key,
            owner,
            plural,
            is_held,
            mode: ApplyMode::Sent,
            call: Mutex::default(),
        }
    }

    /// Only notes what is applied.
    pub(crate) fn noting(children: Arc<Children>, key: Arc<ObjectKey>, owner: Arc<Value>) -> Self {
        Self {
            mode: ApplyMode::Noted,
            ..Self::new(children, Arc::new([]), key, owner, Box::default(), true)
        }
    }

    /// Applies a child, and returns it.
    pub(crate) async fn apply(&self, kind: &KindName, body: Value) -> HandlerResult<ChildJson> {
        if self.mode == ApplyMode::Noted {
            return Ok(ChildJson::Value(self.note(kind, body)));
        }
        let application = self.application(kind, body)?;
        self.call().applied.push(application.identity.clone());
        let kind = application.kind;
        if let Some(child) = application.in_sync() {
            self.note_readiness(kind, &child);
            return Ok(child);
        }
        let is_change = application.exists();
        if is_change && self.waits_for_its_turn(kind) {
            return Ok(application.left());
        }
        match application.send().await {
            Ok(ApplyEnd::Applied(child)) => {
                if is_change {
                    self.call().changed.push(kind.index);
                }
                self.note_readiness(kind, &child);
                Ok(child)
            }
            Ok(ApplyEnd::Left(child)) => Ok(child),
            Ok(ApplyEnd::Replaced(child)) => {
                self.call().unready.push(kind.index);
                Ok(child)
            }
            Ok(ApplyEnd::Going(child)) => {
                self.call().unready.push(kind.index);
                self.call_again_after(UNWATCHED_DELETION);
                Ok(child)
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    fn failed(&self, failure: ApplyFailure) -> HandlerError {
        match failure {
            ApplyFailure::Other(error) => error,
            ApplyFailure::NotOurs(message) => {
                self.call().problem("NotOwned", &message);
                HandlerError::temporary(message)
            }
            // Another call would not help before something changes.
            ApplyFailure::Conflict(message) => {
                self.call().problem("Conflict", &message);
                HandlerError::permanent(message)
            }
            ApplyFailure::Contested(message, wait) => {
                self.call().problem("Conflict", &message);
                HandlerError::temporary_after(wait, message)
            }
        }
    }

    /// Notes a child that is as it should be and not ready, if the next one waits for it.
    fn note_readiness(&self, kind: &OwnedKind, child: &ChildJson) {
        if kind.options.order != UpdateOrder::OneAtATime {
            return;
        }
        let KindName {
            api_version,
            kind: name,
        } = &kind.name;
        if !readiness::of_kind(api_version, name, &child.to_value()).is_ready() {
            self.call().unready.push(kind.index);
        }
    }

    fn note(&self, kind: &KindName, mut body: Value) -> Value {
        body["apiVersion"] = kind.api_version.as_str().into();
        body["kind"] = kind.kind.as_str().into();
        if body["metadata"]["name"].is_null() {
            body["metadata"]["name"] = self.owner["metadata"]["name"].clone();
        }
        self.call().noted.push(body.clone());
        body
    }

    fn application(&self, kind: &KindName, body: Value) -> HandlerResult<ChildApplication<'_>> {
        let declared = self.kinds.iter().find(|it| it.name == *kind);
        let Some(kind) = declared else {
            let KindName { api_version, kind } = kind;
            let message = format!("{api_version}/{kind} is not declared as a child");
            return Err(HandlerError::permanent(message));
        };
        let child_type = ChildType {
            api_version: &kind.name.api_version,
            kind: &kind.name.kind,
            namespaced: kind.namespaced,
        };
        let owner = ObjectView::new(&self.owner);
        let desired = DesiredChild::new(body, child_type, owner, &self.children.manager);
        let desired = desired.map_err(|error| HandlerError::permanent(error.to_string()))?;
        let namespace = desired.namespace.as_deref();
        if !self.children.store().is_watched(kind.index, namespace) {
            let plural = &self.children.kind(kind.index).spec.plural;
            let namespace = namespace.unwrap_or_default();
            let message = format!(
                "this operator does not watch the {plural} of the namespace {namespace}: \
                 add it to the namespaces of the operator"
            );
            return Err(HandlerError::permanent(message));
        }
        if !desired.reachable && kind.options.pruning == Pruning::Prune {
            let mut call = self.call();
            call.out_of_reach = true;
            if !self.is_held {
                call.needs_finalizer = true;
                let message = "the object needs the finalizer before this child";
                return Err(HandlerError::temporary_after(Duration::ZERO, message));
            }
        }
        Ok(ChildApplication {
            identity: ChildIdentity {
                kind: kind.index,
                namespace: desired.namespace.as_deref().map(Box::from),
                name: desired.name.as_str().into(),
            },
            children: &self.children,
            owner: &self.key,
            owner_plural: &self.plural,
            kind,
            desired,
        })
    }

    /// Whether a child is not changed now, as another one before it was changed or is not ready.
    ///
    /// Only those before it count, and only if they are as they should be: two children that are not
    /// ready because of what the change repairs do not wait for each other.
    fn waits_for_its_turn(&self, kind: &OwnedKind) -> bool {
        if kind.options.order != UpdateOrder::OneAtATime {
            return false;
        }
        // The watch reports when it is ready.
        if self.call().unready.contains(&kind.index) {
            return true;
        }
        let is_changed = self.call().changed.contains(&kind.index);
        if is_changed {
            self.call_again_after(Duration::ZERO);
        }
        is_changed
    }

    /// The children of one kind.
    pub(crate) fn list(&self, kind: &KindName) -> Vec<Value> {
        let declared = self.kinds.iter().find(|it| it.name == *kind);
        let Some(kind) = declared else {
            return Vec::new();
        };
        let texts = self.children.store().texts(&self.key.uid, kind.index);
        let objects = texts
            .iter()
            .filter_map(|text| serde_json::from_str(text).ok());
        objects.collect()
    }

    pub(crate) fn call_again_after(&self, delay: Duration) {
        let again = &mut self.call().again;
        *again = Some(again.map_or(delay, |known| known.min(delay)));
    }

    /// Deletes the children that the call did not apply.
    pub(crate) async fn prune(&self) -> Result<(), String> {
        let applied = self.call().applied.clone();
        self.children.prune(&self.key, &self.kinds, &applied).await
    }

    /// The kinds of which a child shows that this call applied it.
    pub(crate) fn applied_kinds(&self, call: &CallSummary) -> Vec<HandlerId> {
        let store = self.children.store();
        let kinds = self.kinds.iter().filter(|kind| {
            let mut applied = call.applied.iter().filter(|it| it.kind == kind.index);
            applied.any(|identity| store.is_applied(&self.key.uid, identity))
        });
        kinds.map(|kind| kind.record_id.clone()).collect()
    }

    /// Whether a child shows that there was a call.
    pub(crate) fn shows_earlier_call(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| self.children.has_applied(&self.key, kind))
    }

    /// What the call did.
    pub(crate) fn call(&self) -> MutexGuard<'_, CallSummary> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CallSummary ===

impl CallSummary {
    fn problem(&mut self, reason: &'static str, message: &str) {
        self.problems.push(ChildProblem {
            reason,
            message: message.to_owned(),
        });
    }
}
