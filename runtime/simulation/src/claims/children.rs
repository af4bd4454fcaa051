//! The claims about `reconcile` and its children.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::object::ObjectView;
use kopf_core::object::diff::same;
use serde_json::{Value, json};

use super::process::Sender;
use super::{NAMES, NAMESPACE, OperatorScenario, meta};
use crate::choices::Choices;
use crate::operator::{CHILD_KIND, owner_of, wanted_children};
use crate::server::{
    ApiRequest, ApiServer, DeletePreconditions, Endpoint, KindId, SimulatedPatch, Verb,
};
use crate::time::VirtualTime;
use crate::world::Violation;

/// The time after which the garbage collector deletes the children of an owner that is gone.
const COLLECTED_AFTER: Duration = Duration::from_secs(5);

/// The ending of the names of objects that are no children.
const FOREIGN: &str = "-9";

/// The calls of `reconcile`, and the children of owners that are gone.
#[derive(Debug, Default)]
pub(super) struct TrackedChildren {
    /// The last call of each process for each owner.
    calls: BTreeMap<(String, Sender), LastCall>,
    /// The children whose owners are gone, with the time at which that was seen.
    orphans: BTreeMap<String, VirtualTime>,
    /// The objects of others.
    foreign: BTreeSet<String>,
    /// The uids of the children that another client has changed as soon as they were there.
    changed: BTreeSet<String>,
    writes: u32,
}

#[derive(Debug)]
struct LastCall {
    state: Arc<Value>,
    wanted: Vec<String>,
    end: TrackedEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrackedEnd {
    /// The call is under way.
    Open,
    Failed,
    /// All children are applied.
    Applied,
}

// === impl TrackedChildren ===

impl TrackedChildren {
    pub(super) fn begun(
        &mut self,
        sender: Sender,
        uid: &str,
        state: &Arc<Value>,
        wanted: &[String],
    ) {
        let call = LastCall {
            state: Arc::clone(state),
            wanted: wanted.to_vec(),
            end: TrackedEnd::Open,
        };
        self.calls.insert((uid.to_owned(), sender), call);
    }

    pub(super) fn ended(&mut self, sender: Sender, uid: &str, succeeded: bool) {
        if let Some(call) = self.calls.get_mut(&(uid.to_owned(), sender)) {
            call.end = match succeeded {
                true => TrackedEnd::Applied,
                false => TrackedEnd::Failed,
            };
        }
    }

    /// A request for a child is sent: only a complete call deletes, and only what it does not want.
    pub(super) fn sent(
        &mut self,
        sender: Sender,
        uid: &str,
        name: &str,
        deletes: bool,
        bound: u32,
    ) -> Result<(), Violation> {
        self.writes += 1;
        if self.writes > bound {
            let details = format!("{} writes", self.writes);
            return Err(Violation::new("writes to children are bounded", details));
        }
        if name.ends_with(FOREIGN) {
            let claim = "nothing foreign is taken over or deleted";
            return Err(Violation::new(claim, name));
        }
        let call = self.calls.get(&(uid.to_owned(), sender));
        let is_wanted = call.is_some_and(|it| it.wanted.iter().any(|it| it == name));
        let is_complete = call.is_some_and(|it| it.end == TrackedEnd::Applied);
        if deletes && (is_wanted || !is_complete) {
            let details = format!("{name} of {uid}: {call:?}");
            return Err(Violation::new("only a complete call deletes", details));
        }
        Ok(())
    }

    /// Another client has sent a request.
    pub(super) fn disturbed(&mut self, request: &ApiRequest, is_success: bool) {
        match &request.verb {
            Verb::Create { body } if is_success => {
                self.foreign.insert(meta(body, "name").to_owned());
            }
            _ => {}
        }
    }
}

// === impl OperatorScenario ===

impl OperatorScenario {
    /// Another client changes or deletes a child, or makes an object that is none.
    pub(super) fn disturb_child(&mut self, kind: KindId, choices: &mut Choices) -> ApiRequest {
        let name = *choices.item(&NAMES[..self.plan.names]);
        let child = format!("{name}-{}", choices.one_of(2));
        let request = |verb| ApiRequest {
            kind,
            ..self.request(verb)
        };
        let patch = |patch: Value| Verb::Patch {
            name: child.as_str().into(),
            endpoint: Endpoint::Object,
            patch: SimulatedPatch::Merge(patch),
        };
        match choices.one_of(8) {
            0..3 => request(Verb::Delete {
                name: child.as_str().into(),
                preconditions: DeletePreconditions::default(),
            }),
            3 | 4 => request(patch(json!({"spec": {"value": 7}}))),
            5 => request(patch(json!({"metadata": {"labels": null}}))),
            6 => request(patch(json!({"spec": {"other": choices.one_of(9)}}))),
            _ => request(Verb::Create {
                body: json!({
                    "apiVersion": "kopf.test/v1", "kind": CHILD_KIND,
                    "metadata": {"name": format!("{name}{FOREIGN}")}, "spec": {"value": 0},
                }),
            }),
        }
    }

    /// Changes each new child once, before the operator may have the answer to its application.
    pub(super) fn change_new_children(&mut self, server: &mut ApiServer) -> bool {
        let Some(kind) = self.plan.child_kind else {
            return false;
        };
        if !self.plan.changes_new_children {
            return false;
        }
        let children = server.peek_all(kind).filter(|it| owner_of(it).is_some());
        let children: Vec<(String, String)> = children
            .map(|it| (meta(it, "uid").to_owned(), meta(it, "name").to_owned()))
            .collect();
        let mut has_changed = false;
        for (uid, name) in children {
            if !self.children.changed.insert(uid) {
                continue;
            }
            let request = ApiRequest {
                kind,
                ..self.request(Verb::Patch {
                    name: name.into(),
                    endpoint: Endpoint::Object,
                    patch: SimulatedPatch::Merge(json!({"spec": {"value": 7}})),
                })
            };
            has_changed |= server.handle(&request).is_success();
        }
        has_changed
    }

    /// Does what the garbage collector does, some time after an owner is gone.
    pub(super) fn collect_garbage(&mut self, server: &mut ApiServer) -> bool {
        let Some(kind) = self.plan.child_kind else {
            return false;
        };
        let owners: BTreeSet<&str> = server
            .peek_all(self.plan.kind)
            .map(|it| meta(it, "uid"))
            .collect();
        let is_orphan = |child: &&Arc<Value>| {
            let references = child["metadata"]["ownerReferences"].as_array();
            references.is_some_and(|all| {
                let mut uids = all.iter().map(|it| it["uid"].as_str());
                !uids.any(|uid| uid.is_some_and(|uid| owners.contains(uid)))
            })
        };
        let orphans = server.peek_all(kind).filter(is_orphan);
        let orphans: Vec<(String, String)> = orphans
            .map(|it| (meta(it, "uid").to_owned(), meta(it, "name").to_owned()))
            .collect();
        let now = server.now();
        let mut has_deleted = false;
        for (uid, name) in orphans {
            let since = *self.children.orphans.entry(uid).or_insert(now);
            if since.after(COLLECTED_AFTER) <= now {
                let request = ApiRequest {
                    kind,
                    ..self.request(Verb::Delete {
                        name: name.into(),
                        preconditions: DeletePreconditions::default(),
                    })
                };
                has_deleted |= server.handle(&request).is_success();
            }
        }
        has_deleted
    }

    /// The children are those of the last call, which saw the last state.
    pub(super) fn check_children(
        &self,
        server: &ApiServer,
        running: usize,
    ) -> Result<(), Violation> {
        let Some(kind) = self.plan.child_kind else {
            return Ok(());
        };
        let children = || server.peek_all(kind);
        for name in &self.children.foreign {
            if server.peek(kind, NAMESPACE, name).is_none() {
                let claim = "nothing foreign is taken over or deleted";
                return Err(Violation::new(claim, name));
            }
        }
        let mut owners = BTreeSet::new();
        for object in server.peek_all(self.plan.kind) {
            let uid = meta(object, "uid");
            owners.insert(uid);
            if ObjectView::new(object).is_being_deleted() {
                continue;
            }
            let of_owner = children().filter(|it| owner_of(it) == Some(uid));
            let found: BTreeMap<&str, &Value> = of_owner
                .map(|it| (meta(it, "name"), &it["spec"]["value"]))
                .collect();
            let wanted = wanted_children(object);
            let is_same = wanted.len() == found.len()
                && wanted.iter().all(|(name, value)| {
                    let found = found.get(name.as_str());
                    found.is_some_and(|it| same(Some(it), Some(value)))
                });
            if !is_same {
                let details = format!("{found:?} instead of {wanted:?}");
                return Err(Violation::new(
                    "the children are those that are wanted",
                    details,
                ));
            }
            self.check_last_call(object, running)?;
        }
        let is_left = |child: &&Arc<Value>| owner_of(child).is_some_and(|it| !owners.contains(it));
        match children().find(is_left) {
            Some(child) => {
                let claim = "children go with their owner";
                Err(Violation::new(claim, child.to_string()))
            }
            None => Ok(()),
        }
    }

    /// The last call of the operator that runs saw the last state; with peering, that of any.
    fn check_last_call(&self, object: &Value, running: usize) -> Result<(), Violation> {
        let uid = meta(object, "uid");
        let setup = self.plan.setup;
        let rules = setup.registry.essence_rules(&[]);
        let essence = setup.persistence.essence(ObjectView::new(object), &rules);
        let calls = self.children.calls.iter();
        // A peer may have made the call, and have removed the record of a failure.
        let shared = self.objects.shared;
        let calls = calls.filter(|((of, by), _)| of == uid && (shared || by.process == running));
        let is_last = |call: &LastCall| {
            let is_same = same(Some(&call.state), Some(essence.as_value()));
            call.end == TrackedEnd::Applied && is_same
        };
        let mut calls = calls.map(|(_, call)| call);
        let (saw, last) = match shared {
            true => (calls.any(is_last), None),
            false => {
                let last = calls.next_back();
                (last.is_some_and(is_last), last)
            }
        };
        match saw {
            true => Ok(()),
            false => {
                let details = format!("{uid}: {last:?}, not {}", essence.as_value());
                Err(Violation::new("the last call sees the last state", details))
            }
        }
    }
}

/// The kind of children.
pub(super) fn parts() -> crate::server::KindDefinition {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    crate::server::KindDefinition::from_crd(&json!({"spec": {
        "group": "kopf.test", "scope": "Namespaced",
        "names": {"kind": CHILD_KIND, "plural": "parts"},
        "versions": [{"name": "v1", "served": true, "subresources": {},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any}}}}],
    }}))
}
