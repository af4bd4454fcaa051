//! What others do to the objects, to the API server and to the operators.

use std::time::Duration;

use kopf_core::object::ObjectView;
use kopf_core::object::finalizer::is_present;
use kopf_core::peering::Peer;
use serde_json::{Value, json};

use super::emphasis::DisturbanceKind;
use super::{NAMES, OperatorScenario, meta};
use crate::choices::Choices;
use crate::operator::{CoordinationMode, LABEL, NAME, OPERATOR};
use crate::server::{
    AccessRule, AdmissionAction, AdmissionRule, AdmissionStage, ApiRequest, ApiServer,
    DeletePreconditions, Endpoint, SimulatedPatch, Verb,
};
use crate::world::Disturbance;

/// The finalizer of another operator.
const OTHER_FINALIZER: &str = "kopf.test/other";

/// The peer that joins and leaves.
const OTHER_PEER: &str = "other";

/// The sorts of edits.
pub(super) const EDITS: u32 = 9;

/// The time for which another client changes an object all the time.
const CONTENTION: Duration = Duration::from_secs(60);

/// The annotation of a webhook.
const STAMP: &str = "kopf.test/stamp";

/// The annotations of the operators.
const ANNOTATIONS: &str = "kopf.zalando.org/";

impl OperatorScenario {
    pub(super) fn disturb(&mut self, server: &ApiServer, choices: &mut Choices) -> Disturbance {
        if let Some(kind) = self.plan.child_kind
            && choices.one_of(4) == 3
        {
            return Disturbance::Request(self.disturb_child(kind, choices));
        }
        let names = &NAMES[..self.plan.names];
        let name = *choices.item(names);
        let processes = match self.plan.mode {
            CoordinationMode::Alone => 1,
            CoordinationMode::Election | CoordinationMode::Peering => 2,
        };
        let process = choices.one_of(processes) as usize;
        let exists = server
            .peek(self.plan.kind, super::NAMESPACE, name)
            .is_some();
        if self.plan.edits_in_haste && exists && choices.one_of(8) > 0 {
            self.edits += 1;
            let edit = json!({"spec": {"b": self.edits}});
            let edit = SimulatedPatch::Merge(edit);
            return Disturbance::Request(self.patch(name, Endpoint::Object, edit));
        }
        match self.plan.emphasis.draw(choices) {
            DisturbanceKind::Contention => self.contend(server, name),
            DisturbanceKind::Stop => Disturbance::Stop {
                process,
                down_for: seconds(choices),
            },
            DisturbanceKind::Coordination => match self.plan.mode {
                CoordinationMode::Alone => Disturbance::Request(self.edit(name, choices)),
                CoordinationMode::Election => Disturbance::Request(self.take_lease()),
                CoordinationMode::Peering => {
                    Disturbance::Request(self.join_peering(server, choices))
                }
            },
            DisturbanceKind::Edit if !exists => {
                let verb = self.create(name, choices);
                Disturbance::Request(self.request(verb))
            }
            DisturbanceKind::Edit => Disturbance::Request(self.edit(name, choices)),
            DisturbanceKind::Deletion => Disturbance::Request(self.request(Verb::Delete {
                name: name.into(),
                preconditions: DeletePreconditions::default(),
            })),
            DisturbanceKind::Release => self.release(server).unwrap_or(Disturbance::CutWatches),
            DisturbanceKind::Crash => Disturbance::Crash {
                process,
                down_for: seconds(choices),
            },
            DisturbanceKind::Compaction => {
                self.objects.edits_unknown = true;
                Disturbance::Compact { keep: 0 }
            }
            DisturbanceKind::Freeze => Disturbance::Freeze {
                process,
                time: seconds(choices) * 4,
            },
            DisturbanceKind::ClockJump => Disturbance::ClockJump {
                process,
                millis: i64::from(choices.one_of(200_000)) - 100_000,
            },
            DisturbanceKind::Webhook | DisturbanceKind::Access if !self.comes_to_rest() => {
                Disturbance::CutWatches
            }
            DisturbanceKind::Webhook => self.webhook(choices),
            DisturbanceKind::Access => self.access(choices),
            DisturbanceKind::WatchCut => Disturbance::CutWatches,
            DisturbanceKind::Removal => self.strip(name, choices),
        }
    }

    fn patch(&self, name: &str, endpoint: Endpoint, patch: SimulatedPatch) -> ApiRequest {
        self.request(Verb::Patch {
            name: name.into(),
            endpoint,
            patch,
        })
    }

    fn edit(&mut self, name: &str, choices: &mut Choices) -> ApiRequest {
        self.edits += 1;
        let value = choices.one_of(3);
        let favourite = self.plan.favourite_edit.filter(|_| choices.one_of(2) == 1);
        let merge = match favourite.unwrap_or_else(|| choices.one_of(EDITS)) {
            0..3 => json!({"spec": {"a": value}}),
            3 | 4 => json!({"spec": {"b": value}}),
            5 => {
                let label = (value > 0).then_some("yes");
                json!({"metadata": {"labels": {LABEL: label}}})
            }
            6 => return self.report_status(name),
            7 => json!({"spec": {"a": null}}),
            _ => {
                let add = json!([
                    {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
                    {"op": "add", "path": "/metadata/finalizers/-", "value": OTHER_FINALIZER},
                ]);
                return self.patch(name, Endpoint::Object, SimulatedPatch::Json(add));
            }
        };
        self.patch(name, Endpoint::Object, SimulatedPatch::Merge(merge))
    }

    /// Another client reports something in the status.
    fn report_status(&self, name: &str) -> ApiRequest {
        let status = json!({"status": {"other": self.edits}});
        let endpoint = match self.plan.setup.status_endpoint {
            true => Endpoint::Status,
            false => Endpoint::Object,
        };
        self.patch(name, endpoint, SimulatedPatch::Merge(status))
    }

    /// Another client begins to change an object all the time: it is faster than each operator that
    /// reads the object before it writes.
    fn contend(&mut self, server: &ApiServer, name: &str) -> Disturbance {
        self.contentions += 1;
        self.contended = Some((name.into(), server.now().after(CONTENTION)));
        self.edits += 1;
        Disturbance::Request(self.report_status(name))
    }

    /// The client that changes an object all the time does so, if an operator has just read it;
    /// returns whether it has.
    pub(super) fn overtake_reader(&mut self, server: &mut ApiServer) -> bool {
        if !std::mem::take(&mut self.is_contended_read) {
            return false;
        }
        let until = self.contended.take_if(|(_, until)| *until < server.now());
        let Some((name, _)) = self.contended.clone().filter(|_| until.is_none()) else {
            return false;
        };
        self.edits += 1;
        let request = self.report_status(&name);
        let answer = server.handle(&request);
        // It is one disturbance, however often it happens: the requests of operators stay bounded.
        self.note_change(&request, &answer, server.now());
        answer.is_success()
    }

    /// Another process takes the Lease for a while, for longer than the deadline of its holder.
    fn take_lease(&self) -> ApiRequest {
        let spec = json!({"holderIdentity": "other", "leaseDurationSeconds": 60});
        ApiRequest {
            kind: self.plan.coordination_kind,
            ..self.patch(
                NAME,
                Endpoint::Object,
                SimulatedPatch::Merge(json!({"spec": spec})),
            )
        }
    }

    /// Another operator with a high priority comes for a while.
    fn join_peering(&mut self, server: &ApiServer, choices: &mut Choices) -> ApiRequest {
        let seen = kopf_core::time::to_micros(server.now().timestamp());
        let other = Peer {
            identity: OTHER_PEER.to_owned(),
            priority: 100,
            lifetime: Duration::from_secs(5),
            lastseen: seen,
        };
        let mut record = other.record();
        // Any client may write a number of seconds that no clock can express.
        self.has_endless_peer = choices.one_of(4) == 3;
        if self.has_endless_peer {
            record["lifetime"] = json!("inf");
        }
        self.patch_peering(&record)
    }

    /// The request in which another operator writes or removes its record.
    fn patch_peering(&self, record: &Value) -> ApiRequest {
        let patch = SimulatedPatch::Merge(json!({"status": {OTHER_PEER: record}}));
        ApiRequest {
            kind: self.plan.coordination_kind,
            ..self.patch(NAME, Endpoint::Object, patch)
        }
    }

    /// The other operator whose record would be valid for years takes it back; returns whether
    /// there is one.
    pub(super) fn remove_endless_peer(&mut self, server: &mut ApiServer) -> bool {
        let has_endless_peer = std::mem::take(&mut self.has_endless_peer);
        if has_endless_peer {
            server.handle(&self.patch_peering(&Value::Null));
        }
        has_endless_peer
    }

    /// The other operator does its part for an object that is deleted.
    fn release(&self, server: &ApiServer) -> Option<Disturbance> {
        let held = server.peek_all(self.plan.kind).find(|object| {
            let view = ObjectView::new(object);
            is_present(view, OTHER_FINALIZER) && view.is_being_deleted()
        })?;
        let finalizers = ObjectView::new(held).finalizers();
        let rest: Vec<&str> = finalizers.filter(|it| *it != OTHER_FINALIZER).collect();
        let version = meta(held, "resourceVersion");
        let patch = json!({"metadata": {"finalizers": rest, "resourceVersion": version}});
        let patch = SimulatedPatch::Merge(patch);
        let request = self.patch(meta(held, "name"), Endpoint::Object, patch);
        Some(Disturbance::Request(request))
    }

    /// Another client removes what the operators have written.
    fn strip(&mut self, name: &str, choices: &mut Choices) -> Disturbance {
        let patch = match choices.one_of(2) {
            0 => json!({"metadata": {"annotations": null}}),
            _ => {
                self.finalizers_removed = true;
                json!({"metadata": {"finalizers": null}})
            }
        };
        let patch = SimulatedPatch::Merge(patch);
        Disturbance::Request(self.patch(name, Endpoint::Object, patch))
    }

    fn webhook(&mut self, choices: &mut Choices) -> Disturbance {
        let action = match choices.one_of(9) {
            0..2 => AdmissionAction::Deny {
                code: None,
                message: "not now".to_owned(),
            },
            2 => AdmissionAction::Deny {
                code: Some(403),
                message: "never".to_owned(),
            },
            3 => AdmissionAction::Fail,
            4 => AdmissionAction::Stamp(STAMP.to_owned()),
            5 => AdmissionAction::StripAnnotations(ANNOTATIONS.to_owned()),
            6 => AdmissionAction::RevertField("status".to_owned()),
            7 => AdmissionAction::RestoreFinalizer(self.finalizer().to_owned()),
            _ => AdmissionAction::StripFinalizer(self.finalizer().to_owned()),
        };
        self.webhook_removes = matches!(
            action,
            AdmissionAction::StripAnnotations(_)
                | AdmissionAction::StripFinalizer(_)
                | AdmissionAction::RestoreFinalizer(_)
                | AdmissionAction::RevertField(_)
        );
        self.webhook_removed |= self.webhook_removes;
        self.finalizers_removed |= matches!(action, AdmissionAction::StripFinalizer(_));
        self.webhook_stamped |= matches!(action, AdmissionAction::Stamp(_));
        Disturbance::Webhooks(vec![self.rule(action)])
    }

    /// A webhook that stamps all writes.
    pub(super) fn stamp(&self) -> AdmissionRule {
        self.rule(AdmissionAction::Stamp(STAMP.to_owned()))
    }

    /// A webhook that denies all writes.
    pub(super) fn denial(&self, code: u16) -> AdmissionRule {
        self.rule(AdmissionAction::Deny {
            code: Some(code),
            message: "never".to_owned(),
        })
    }

    fn rule(&self, action: AdmissionAction) -> AdmissionRule {
        AdmissionRule {
            name: "other.kopf.test".to_owned(),
            stage: AdmissionStage::Mutating,
            kind: self.plan.kind,
            endpoint: Endpoint::Object,
            on_create: false,
            action,
        }
    }

    fn access(&self, choices: &mut Choices) -> Disturbance {
        let (kind, verbs) = match choices.one_of(5) {
            0 | 1 => (self.plan.kind, vec!["patch"]),
            2 => (self.plan.kind, vec!["get"]),
            3 => (self.plan.kind, vec!["list", "watch"]),
            _ => (self.plan.coordination_kind, vec!["patch", "get"]),
        };
        Disturbance::Access(vec![AccessRule {
            user: OPERATOR.into(),
            kind,
            verbs,
            endpoint: Endpoint::Object,
        }])
    }
}

/// Whether another client removes what operators have written.
pub(super) fn removes_facts(request: &ApiRequest) -> bool {
    removes(request, "/metadata/annotations")
}

/// Whether another client removes records or finalizers of operators.
pub(super) fn removes_ours(request: &ApiRequest) -> bool {
    removes_facts(request) || removes(request, "/metadata/finalizers")
}

fn removes(request: &ApiRequest, field: &str) -> bool {
    match &request.verb {
        Verb::Patch {
            patch: SimulatedPatch::Merge(patch),
            ..
        } => patch.pointer(field).is_some_and(Value::is_null),
        _ => false,
    }
}

fn seconds(choices: &mut Choices) -> Duration {
    Duration::from_secs(u64::from(choices.one_of(30)))
}
