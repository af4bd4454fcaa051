//! The claims about the end of a history.

use std::borrow::Cow;
use std::collections::BTreeSet;

use kopf_core::cause::{Reason, Subject};
use kopf_core::handler::filter::FieldFilter;
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::object::ObjectView;
use kopf_core::object::diff::same;
use kopf_core::object::finalizer::is_present;
use kopf_core::object::path::FieldPath;
use serde_json::Value;

use super::object::{TrackedCall, TrackedObject};
use super::shown::scope;
use super::{OperatorScenario, meta};
use crate::operator::{
    CoordinationMode, SimulatedOperator, indexed_value, sub_field, sub_handlers,
};
use crate::server::ApiServer;
use crate::world::Violation;

impl OperatorScenario {
    pub(super) fn check_rest(
        &self,
        server: &ApiServer,
        actors: &[&SimulatedOperator],
    ) -> Result<(), Violation> {
        if let Some(actor) = actors.iter().find(|it| it.is_stopping()) {
            let details = format!("runs: {}", actor.runs());
            return Err(Violation::new("a stop comes to an end", details));
        }
        let running: Vec<&&SimulatedOperator> = actors.iter().filter(|it| it.runs()).collect();
        if running.len() != 1 {
            let details = format!("{} do", running.len());
            return Err(Violation::new("one operator runs in the end", details));
        }
        for object in server.peek_all(self.plan.kind) {
            self.check_object(object)?;
        }
        for actor in actors {
            self.check_memory(server, actor)?;
        }
        self.check_children(server, running[0].process())?;
        for actor in actors.iter().filter(|it| !it.runs()) {
            if let Some((uid, at)) = actor.running_background().next() {
                let details = format!("{at} of {uid}");
                return Err(Violation::new("no daemon runs in a pause", details));
            }
        }
        self.check_background(server, running[0])
    }

    fn check_object(&self, object: &Value) -> Result<(), Violation> {
        let view = ObjectView::new(object);
        let held = is_present(view, self.finalizer());
        if view.is_being_deleted() {
            return match held {
                true => {
                    let claim = "an object that is deleted is released";
                    Err(Violation::new(claim, object.to_string()))
                }
                false => Ok(()),
            };
        }
        let setup = self.plan.setup;
        let is_ignored = setup.registry.ignores(&Subject::object(view));
        let rules = setup.registry.essence_rules(&[]);
        let essence = setup.persistence.essence(view, &rules);
        if !is_ignored && !setup.persistence.baseline(view).diff(&essence).is_empty() {
            let claim = "the last handled state is the final state";
            return Err(Violation::new(claim, object.to_string()));
        }
        // A peer that runs at once may write records of sub-handlers that this one does not know, and
        // so may an earlier process, by a request that is executed after its end.
        let tracked = self.objects.get(meta(object, "uid"));
        let subs_known = self.plan.mode != CoordinationMode::Peering
            && !tracked.is_some_and(|it| it.written_after_end);
        for spec in setup.registry.change_handlers().filter(|_| !is_ignored) {
            let subs = sub_handlers(&spec.id).into_iter().filter(|_| subs_known);
            for id in std::iter::once(spec.id.clone()).chain(subs) {
                if setup.persistence.progress.fetch(&id, view).is_some() {
                    let details = format!("{id}: {object}");
                    return Err(Violation::new("no records are left", details));
                }
            }
        }
        let last = essence.into_value();
        for spec in setup.registry.change_handlers() {
            self.check_handled(object, spec, &last)?;
        }
        Ok(())
    }

    /// Every matching handler has handled the final state.
    fn check_handled(
        &self,
        object: &Value,
        spec: &HandlerSpec,
        last: &Value,
    ) -> Result<(), Violation> {
        let (view, uid) = (ObjectView::new(object), meta(object, "uid"));
        let tracked = self.objects.get(uid);
        let calls = tracked.map_or(&[][..], |it| &it.calls);
        let finished: Vec<&TrackedCall> = calls.iter().filter(|it| it.is_done()).collect();
        let own = finished.iter().rfind(|it| it.handler == spec.id);
        // If others have removed the last handled state, nothing tells that there was a field.
        let is_unknown = tracked.is_some_and(|it| it.facts_removed)
            && self.plan.setup.persistence.baseline(view).is_absent();
        let has_lost_field =
            !is_unknown && own.is_some_and(|own| has_lost_field(object, spec, &own.state));
        if !spec.prematches(&Subject::object(view)) && !has_lost_field {
            return Ok(());
        }
        let is_handled = |id: &HandlerId| calls.iter().any(|it| it.handler == *id && it.finished);
        let to_call = own.map_or_else(Vec::new, |own| sub_handlers_to_call(calls, own, last));
        let mut family = std::iter::once(&spec.id).chain(to_call.iter().copied());
        if spec.trigger == Trigger::Create
            && let Some(id) = family.find(|id| !is_handled(id))
        {
            let details = format!("{id} of {uid}");
            return Err(Violation::new("creation is handled", details));
        }
        if !matches!(spec.trigger, Trigger::Update | Trigger::Field) {
            return Ok(());
        }
        let path = scope(self.plan.setup, &spec.id);
        let handled = match own {
            Some(own) if self.is_handled_by_peer(&finished, own, &path, last) => None,
            Some(_) if self.has_record_of_peer(object, calls, &spec.id, &path, last) => None,
            Some(own) => Some(&*own.state),
            None => self.relied_on(&finished, &path, last),
        };
        let of_fields = sub_handlers(&spec.id).into_iter();
        let of_fields: Vec<_> = of_fields.filter(|it| sub_field(it).is_some()).collect();
        for sub in to_call.iter().copied().chain(&of_fields) {
            if tracked.is_some_and(|it| self.was_without(it, sub, &path, last)) {
                continue;
            }
            let path = sub_field(sub).map_or(path.clone(), Cow::Owned);
            let has_ended = |it: &TrackedCall| {
                it.handler == *sub && it.finished && alike(&path, &it.state, last)
            };
            let has_ended = || calls.iter().any(has_ended);
            // If others have removed its record, nothing tells which state it has handled.
            let mut ends = calls.iter().filter(|it| it.handler == *sub && it.finished);
            let facts_removed = tracked.is_some_and(|it| it.facts_removed);
            if facts_removed && ends.next_back().is_some_and(TrackedCall::was_forgotten) {
                continue;
            }
            let is_handled = match finished.iter().rfind(|it| it.handler == *sub) {
                Some(own) if alike(&path, &own.state, last) => true,
                // A record of a peer may be left, so that the end of another one is not shown.
                Some(own) => {
                    self.is_handled_by_peer(&finished, own, &path, last)
                        || self.objects.shared && has_ended()
                }
                // The end of the cycle removes the records, and may leave another state as the last
                // handled one than that which the sub-handler saw.
                None => has_ended() || !to_call.contains(&sub),
            };
            if !is_handled {
                let details = format!("{sub} of {uid} has not handled {last}");
                return Err(Violation::new("no change is lost", details));
            }
        }
        match handled {
            Some(handled) if !alike(&path, handled, last) => {
                let details = format!("{} of {uid} saw {handled}, not {last}", spec.id);
                Err(Violation::new("no change is lost", details))
            }
            _ => Ok(()),
        }
    }

    /// Whether a handler above a sub-handler has finished without it since its last attempt, or has
    /// handled the final state without it in another peer.
    fn was_without(
        &self,
        tracked: &TrackedObject,
        sub: &HandlerId,
        path: &FieldPath,
        last: &Value,
    ) -> bool {
        let is_for_last = |it: &TrackedCall| alike(path, &it.state, last);
        tracked.was_without(sub)
            || self.objects.shared && tracked.peer_was_without(sub, is_for_last)
    }

    /// Whether another peer has handled the final state: the last attempt may be that of a process
    /// which stood still, and did not know yet that it was to pause.
    fn is_handled_by_peer(
        &self,
        finished: &[&TrackedCall],
        own: &TrackedCall,
        path: &FieldPath,
        last: &Value,
    ) -> bool {
        let shared = self.plan.mode == CoordinationMode::Peering;
        let of_peer = |it: &&&TrackedCall| {
            it.handler == own.handler && it.sender.process != own.sender.process
        };
        let of_peer = finished.iter().rfind(of_peer);
        shared && of_peer.is_some_and(|it| alike(path, &it.state, last))
    }

    /// Whether an attempt has handled the final state, but its end is not shown: a peer that ran at
    /// once has written the record of an older attempt afterwards. No handler matches the object
    /// any more, so that the record stays.
    fn has_record_of_peer(
        &self,
        object: &Value,
        calls: &[TrackedCall],
        handler: &HandlerId,
        path: &FieldPath,
        last: &Value,
    ) -> bool {
        let setup = self.plan.setup;
        let view = ObjectView::new(object);
        let progress = &setup.persistence.progress;
        let is_left = || progress.fetch(handler, view).is_some();
        let mut ends = calls
            .iter()
            .filter(|it| it.handler == *handler && it.finished);
        self.plan.mode == CoordinationMode::Peering
            && is_left()
            && ends.any(|it| alike(path, &it.state, last))
    }

    /// The state that a handler relies on which was never called: that of the creation, unless
    /// every create handler has finished on the final state.
    fn relied_on<'a>(
        &self,
        finished: &[&'a TrackedCall],
        path: &FieldPath,
        last: &Value,
    ) -> Option<&'a Value> {
        let setup = self.plan.setup;
        let is_creation = |call: &TrackedCall| call.reason == Reason::Create;
        let oldest = finished.iter().find(|it| is_creation(it))?;
        if alike(path, &oldest.state, last) {
            return None;
        }
        // Peers may both call a create handler for a while: its last attempt counts.
        let is_last = |at: usize, handler: &HandlerId| {
            let mut later = finished[at + 1..].iter();
            !later.any(|it| it.handler == *handler)
        };
        let mut calls = finished.iter().enumerate();
        let outdated = calls.find(|(at, call)| {
            let scope = scope(setup, &call.handler);
            is_creation(call)
                && is_last(*at, &call.handler)
                && !alike(&scope, &call.state, last)
                && !self.is_handled_by_peer(finished, call, &scope, last)
        });
        outdated.map(|(_, it)| &*it.state)
    }

    /// Nothing stays in memory of objects that are gone.
    fn check_memory(&self, server: &ApiServer, actor: &SimulatedOperator) -> Result<(), Violation> {
        let objects = || server.peek_all(self.plan.kind);
        let existing: BTreeSet<&str> = objects().map(|it| meta(it, "uid")).collect();
        for (part, uid) in actor.remembered() {
            if actor.runs() && !existing.contains(uid.as_str()) {
                let details = format!("{part} knows {uid}");
                let claim = "nothing stays in memory of objects that are gone";
                return Err(Violation::new(claim, details));
            }
        }
        if !actor.runs() {
            return Ok(());
        }
        for value in 0..4_u64 {
            let with_value = objects().filter(|it| indexed_value(it) == value);
            let Some(indexed) = actor.indexed(&format!("a={value}")) else {
                return Ok(());
            };
            let expected = (existing.len(), with_value.count());
            if indexed != expected {
                let details = format!("{indexed:?} instead of {expected:?} for a={value}");
                return Err(Violation::new("the index has all objects", details));
            }
        }
        Ok(())
    }

    /// The daemons and timers that run are those of the objects that match.
    fn check_background(
        &self,
        server: &ApiServer,
        actor: &SimulatedOperator,
    ) -> Result<(), Violation> {
        let running: BTreeSet<(&str, usize)> = actor.running_background().collect();
        for (uid, at) in &running {
            let mut objects = server.peek_all(self.plan.kind);
            let object = objects.find(|it| meta(it, "uid") == *uid);
            let matches = object.is_some_and(|it| self.is_wanted(it, *at));
            if !matches {
                let details = format!("{at} of {uid}");
                let claim = "daemons and timers run for matching objects only";
                return Err(Violation::new(claim, details));
            }
        }
        for object in server.peek_all(self.plan.kind) {
            for at in 0..self.plan.setup.background.len() {
                let uid = meta(object, "uid");
                let runs = running.contains(&(uid, at));
                if self.is_wanted(object, at) && !runs && !actor.has_finished(uid, at) {
                    let details = format!("{at} of {uid}");
                    let claim = "daemons and timers run for matching objects";
                    return Err(Violation::new(claim, details));
                }
            }
        }
        Ok(())
    }

    fn is_wanted(&self, object: &Value, at: usize) -> bool {
        let view = ObjectView::new(object);
        let spec = &self.plan.setup.background[at].spec;
        !view.is_being_deleted() && spec.matches(&Subject::object(view))
    }
}

/// Whether a handler of a field does not match an object any more only because the field is gone.
fn has_lost_field(object: &Value, spec: &HandlerSpec, seen: &Value) -> bool {
    let mut elsewhere = spec.clone();
    let field = elsewhere.filters.field.take();
    let is_gone = |field: &FieldFilter| {
        field.path.resolve(seen).is_some() && field.path.resolve(object).is_none()
    };
    field.as_ref().is_some_and(is_gone)
        && elsewhere.prematches(&Subject::object(ObjectView::new(object)))
}

fn alike(path: &FieldPath, a: &Value, b: &Value) -> bool {
    same(path.resolve(a), path.resolve(b))
}

/// The sub-handlers of all levels that the calls of a family for a state have to call.
fn sub_handlers_to_call<'a>(
    calls: &'a [TrackedCall],
    call: &'a TrackedCall,
    state: &Value,
) -> Vec<&'a HandlerId> {
    let root = FieldPath::root();
    let with_nested = |sub: &'a HandlerId| {
        let is_for_state =
            |it: &&TrackedCall| it.handler == *sub && it.finished && alike(&root, &it.state, state);
        let last = calls.iter().rfind(is_for_state);
        let nested = last.map_or_else(Vec::new, |it| sub_handlers_to_call(calls, it, state));
        std::iter::once(sub).chain(nested)
    };
    call.subs.iter().flat_map(with_nested).collect()
}
