//! The claims about the operator, and the histories in which they must hold.

use std::collections::BTreeSet;
use std::time::Duration;

use kopf_core::object::ObjectView;
use kopf_core::object::finalizer::is_present;
use serde_json::{Value, json};

use super::{
    FINALIZER, FinalizerFact, FinalizerOperator, NAMESPACE, PlantedMistake, name_of, text,
};
use crate::choices::Choices;
use crate::faults::FaultPlan;
use crate::server::{
    AdmissionAction, AdmissionRule, AdmissionStage, ApiRequest, ApiServer, DeletePreconditions,
    Endpoint, KindDefinition, KindId, SimulatedPatch, Verb,
};
use crate::world::{Disturbance, HistoryLimits, HistoryPhase, Occurrence, Scenario, Violation};

const NAMES: &[&str] = &["a", "b", "c"];

/// The finalizer of another operator.
const OTHER_FINALIZER: &str = "kopf.test/other";

/// Histories of objects with finalizers.
#[derive(Debug)]
pub struct FinalizerScenario {
    mistake: PlantedMistake,
    kind: KindId,
    /// The objects that were cleaned up.
    cleaned: BTreeSet<String>,
    edits: u64,
}

// === impl FinalizerScenario ===

impl FinalizerScenario {
    /// Histories of an operator with a mistake.
    #[must_use]
    pub fn new(mistake: PlantedMistake) -> Self {
        let mut server = ApiServer::new();
        Self {
            mistake,
            kind: server.define(definition()),
            cleaned: BTreeSet::new(),
            edits: 0,
        }
    }

    fn request(&self, verb: Verb) -> Disturbance {
        Disturbance::Request(ApiRequest {
            user: "person".into(),
            kind: self.kind,
            namespace: Some(NAMESPACE.into()),
            verb,
        })
    }

    fn create(&mut self, name: &str) -> Verb {
        self.edits += 1;
        Verb::Create {
            body: json!({
                "apiVersion": "kopf.test/v1", "kind": "Widget",
                "metadata": {"name": name}, "spec": {"edit": self.edits},
            }),
        }
    }

    fn edit(&mut self, name: &str, choices: &mut Choices) -> Verb {
        self.edits += 1;
        let patch = match choices.one_of(3) {
            0 => SimulatedPatch::Merge(json!({"spec": {"edit": self.edits}})),
            1 => SimulatedPatch::Merge(json!({"metadata": {"annotations": {"x": "y"}}})),
            _ => SimulatedPatch::Json(json!([
                {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
                {"op": "add", "path": "/metadata/finalizers/-", "value": OTHER_FINALIZER},
            ])),
        };
        Verb::Patch {
            name: name.into(),
            endpoint: Endpoint::Object,
            patch,
        }
    }

    /// The last finalizer of an operator that does its part at once.
    fn release(&self, server: &ApiServer) -> Option<Disturbance> {
        let held = server.peek_all(self.kind).find(|object| {
            is_present(ObjectView::new(object), OTHER_FINALIZER)
                && ObjectView::new(object).is_being_deleted()
        })?;
        let rest: Vec<&str> = ObjectView::new(held)
            .finalizers()
            .filter(|it| *it != OTHER_FINALIZER)
            .collect();
        let version = &held["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"finalizers": rest, "resourceVersion": version}});
        Some(self.request(Verb::Patch {
            name: name_of(held).into(),
            endpoint: Endpoint::Object,
            patch: SimulatedPatch::Merge(patch),
        }))
    }

    fn webhook(&self, action: AdmissionAction) -> Disturbance {
        Disturbance::Webhooks(vec![AdmissionRule {
            name: "other.kopf.test".to_owned(),
            stage: AdmissionStage::Mutating,
            kind: self.kind,
            endpoint: Endpoint::Object,
            on_create: false,
            action,
        }])
    }

    /// Checks a change that a request of an operator has made.
    fn check_change(&self, answer: &Value) -> Result<(), Violation> {
        let gone = ObjectView::new(answer).is_being_deleted()
            && !is_present(ObjectView::new(answer), FINALIZER);
        let uid = text(answer, "uid");
        if gone && !self.cleaned.contains(uid) {
            let details = format!("{} with uid {uid} was not", name_of(answer));
            let claim = "an object is cleaned up before its finalizer is removed";
            return Err(Violation::new(claim, details));
        }
        if !gone && !is_present(ObjectView::new(answer), FINALIZER) {
            let claim = "an operator removes its finalizer only from objects that are deleted";
            return Err(Violation::new(claim, name_of(answer)));
        }
        Ok(())
    }
}

impl Scenario for FinalizerScenario {
    type Actor = FinalizerOperator;

    fn limits(&self) -> HistoryLimits {
        HistoryLimits {
            processes: 2,
            disturbances: 20,
            disturbed_for: Duration::from_secs(120),
            settles_within: Duration::from_secs(600),
            stays_calm_for: Duration::from_secs(300),
            steps: 20_000,
            faults: FaultPlan::rough(),
        }
    }

    fn prepare(&mut self, server: &mut ApiServer, choices: &mut Choices) {
        self.kind = server.define(definition());
        server.create_namespace(NAMESPACE);
        for name in NAMES.iter().take(choices.one_of(4) as usize) {
            let verb = self.create(name);
            if let Disturbance::Request(request) = self.request(verb) {
                server.handle(&request);
            }
        }
    }

    fn actor(&self, _: usize) -> FinalizerOperator {
        FinalizerOperator::new(self.kind, self.mistake)
    }

    fn disturbance(&mut self, server: &ApiServer, choices: &mut Choices) -> Disturbance {
        let name = *choices.item(NAMES);
        let process = choices.one_of(2) as usize;
        let seconds = |choices: &mut Choices| Duration::from_secs(u64::from(choices.one_of(30)));
        match choices.one_of(16) {
            0..5 => {
                let verb = self.create(name);
                self.request(verb)
            }
            5..8 => {
                let verb = self.edit(name, choices);
                self.request(verb)
            }
            8..11 => self.request(Verb::Delete {
                name: name.into(),
                preconditions: DeletePreconditions::default(),
            }),
            11 => Disturbance::Crash {
                process,
                down_for: seconds(choices),
            },
            12 => Disturbance::Compact { keep: 0 },
            13 => Disturbance::Freeze {
                process,
                time: seconds(choices),
            },
            14 => match choices.one_of(3) {
                0 => self.webhook(AdmissionAction::Deny {
                    code: None,
                    message: "not now".to_owned(),
                }),
                1 => self.webhook(AdmissionAction::Fail),
                _ => self.webhook(AdmissionAction::Stamp("kopf.test/stamp".to_owned())),
            },
            _ => self.release(server).unwrap_or(Disturbance::CutWatches),
        }
    }

    fn observe(
        &mut self,
        occurrence: &Occurrence<'_, FinalizerFact>,
        _: &ApiServer,
    ) -> Result<(), Violation> {
        match occurrence {
            Occurrence::Reported { fact, .. } => {
                let FinalizerFact::CleanedUp(uid) = fact;
                self.cleaned.insert(uid.clone());
                Ok(())
            }
            Occurrence::Executed {
                request,
                answer,
                changed: true,
                phase,
                ..
            } => {
                if *phase == HistoryPhase::Calm {
                    let details = format!("{:?}", request.verb);
                    return Err(Violation::new("operators stay at rest", details));
                }
                match answer.as_object() {
                    Some(object) => self.check_change(object),
                    None => Ok(()),
                }
            }
            Occurrence::Executed { .. }
            | Occurrence::Disturbed { .. }
            | Occurrence::Crashed { .. } => Ok(()),
        }
    }

    fn at_rest(
        &mut self,
        server: &ApiServer,
        actors: &[&FinalizerOperator],
    ) -> Result<(), Violation> {
        for object in server.peek_all(self.kind) {
            let deleting = ObjectView::new(object).is_being_deleted();
            let held = is_present(ObjectView::new(object), FINALIZER);
            if deleting == held {
                let claim = "objects at rest have the finalizer until they are deleted";
                return Err(Violation::new(claim, object.to_string()));
            }
        }
        let existing: BTreeSet<String> = server.peek_all(self.kind).map(|it| name_of(it)).collect();
        for actor in actors {
            if let Some(name) = actor.known().find(|name| !existing.contains(*name)) {
                let claim = "nothing stays in memory of objects that are gone";
                return Err(Violation::new(claim, name));
            }
        }
        Ok(())
    }
}

fn definition() -> KindDefinition {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    KindDefinition::from_crd(&json!({"spec": {
        "group": "kopf.test", "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any}}}}],
    }}))
}
