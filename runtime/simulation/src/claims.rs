//! Histories of simulated operators, and the claims that must hold in them.
//!
//! The claims are those of `docs/guarantees.md`, and some about coming to rest.

mod at_rest;
mod children;
mod disturbances;
mod emphasis;
mod leases;
mod lists;
mod object;
mod pauses;
mod process;
mod returns;
mod shown;
mod tracking;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kopf_core::object::ObjectView;
use kopf_core::object::finalizer::is_present;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::faults::FaultPlan;
use crate::operator::{
    BegunCall, Behaviour, CoordinationMode, MOST_KEPT_STATES, NAMESPACE, OperatorFact,
    OperatorOptions, OperatorSetup, SimulatedOperator, peering_object,
};
use crate::server::{
    ApiAnswer, ApiRequest, ApiServer, KindDefinition, KindId, SimulatedPatch, Verb,
};
use crate::time::VirtualTime;
use crate::world::{Disturbance, HistoryLimits, HistoryPhase, Occurrence, Scenario, Violation};

use children::{TrackedChildren, parts};
use disturbances::EDITS;
use emphasis::Emphasis;
use leases::LeaseTerms;
use lists::ListedStates;
use object::WriteBounds;
use pauses::ResumedStates;
use process::Sender;
use returns::ReturnedStates;
use tracking::{Landed, TrackedObjects};

/// The names of objects; one comes again and again.
const NAMES: &[&str] = &["a", "b", "c"];

/// The longest work for an object whose writes are denied: a minute of attempts, and calls.
const LONGEST_WORK: Duration = Duration::from_secs(200);

/// Histories of operators whose decisions are those of kopf-core.
#[derive(Debug)]
pub struct OperatorScenario {
    plan: HistoryPlan,
    objects: TrackedObjects,
    children: TrackedChildren,
    leases: LeaseTerms,
    returns: ReturnedStates,
    lists: ListedStates,
    resumed: ResumedStates,
    edits: u64,
    disturbances: u32,
    /// Whether the present webhook removes what operators write.
    webhook_removes: bool,
    /// Whether a webhook has ever removed what operators write.
    webhook_removed: bool,
    /// Whether a webhook has ever stamped what operators write.
    webhook_stamped: bool,
    /// Whether others have ever removed finalizers.
    finalizers_removed: bool,
    /// Whether a peer has a record that would be valid for years.
    has_endless_peer: bool,
    /// The object that another client changes each time an operator has read it, and until when.
    contended: Option<(Arc<str>, VirtualTime)>,
    /// How often such a time has begun.
    contentions: u32,
    /// Whether an operator has just read that object.
    is_contended_read: bool,
}

/// The operators and the objects of a history.
#[derive(Debug, Clone, Copy)]
struct HistoryPlan {
    setup: &'static OperatorSetup,
    behaviour: Behaviour,
    mode: CoordinationMode,
    kind: KindId,
    /// The kind of children, if the operators have any.
    child_kind: Option<KindId>,
    /// Whether another client changes each child as soon as it is there.
    changes_new_children: bool,
    /// Whether a user edits one object in haste, and never to a former state.
    edits_in_haste: bool,
    coordination_kind: KindId,
    names: usize,
    disturbances: usize,
    bursts: u32,
    /// What others do most.
    emphasis: Emphasis,
    /// The edit that others make most, if there is one.
    favourite_edit: Option<u32>,
    is_rough: bool,
    /// What can never come to rest.
    lasting: LastingTrouble,
}

/// The kinds of all histories, which are read once.
struct ScenarioKinds {
    leases: Arc<KindDefinition>,
    peerings: Arc<KindDefinition>,
    widgets: Arc<KindDefinition>,
    parts: Arc<KindDefinition>,
    widgets_with_status: Arc<KindDefinition>,
}

/// A trouble that outlasts the disturbances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastingTrouble {
    None,
    /// A webhook denies all writes of the operators.
    Denial,
    /// A webhook stamps all writes, so that each makes another state.
    Stamps,
    /// The namespace of the Lease does not exist.
    NoNamespace,
}

// === impl LastingTrouble ===

impl LastingTrouble {
    /// Seldom any: such a history takes the most steps.
    fn choose(mode: CoordinationMode, choices: &mut Choices) -> Self {
        match (choices.one_of(96), mode) {
            (95, _) => Self::Denial,
            (94, CoordinationMode::Election) => Self::NoNamespace,
            (90..94, _) => Self::Stamps,
            _ => Self::None,
        }
    }
}

// === impl ScenarioKinds ===

impl ScenarioKinds {
    fn all() -> &'static Self {
        static ALL: OnceLock<ScenarioKinds> = OnceLock::new();
        ALL.get_or_init(|| Self {
            leases: KindDefinition::leases().into(),
            peerings: peerings().into(),
            widgets: widgets(false).into(),
            parts: parts().into(),
            widgets_with_status: widgets(true).into(),
        })
    }
}

// === impl OperatorScenario ===

impl Default for OperatorScenario {
    fn default() -> Self {
        Self::new()
    }
}

impl OperatorScenario {
    /// A history that is not prepared yet.
    #[must_use]
    pub fn new() -> Self {
        let kind = KindId(0);
        Self {
            plan: HistoryPlan {
                setup: &OperatorSetup::all()[0],
                behaviour: Behaviour::default(),
                mode: CoordinationMode::Alone,
                kind,
                child_kind: None,
                changes_new_children: false,
                edits_in_haste: false,
                coordination_kind: kind,
                names: 1,
                disturbances: 0,
                bursts: 0,
                emphasis: Emphasis::default(),
                favourite_edit: None,
                is_rough: false,
                lasting: LastingTrouble::None,
            },
            objects: TrackedObjects::default(),
            children: TrackedChildren::default(),
            leases: LeaseTerms::default(),
            returns: ReturnedStates::default(),
            lists: ListedStates::default(),
            resumed: ResumedStates::default(),
            edits: 0,
            disturbances: 0,
            webhook_removes: false,
            webhook_removed: false,
            webhook_stamped: false,
            finalizers_removed: false,
            has_endless_peer: false,
            contended: None,
            contentions: 0,
            is_contended_read: false,
        }
    }

    /// Whether the operators can come to rest.
    fn comes_to_rest(&self) -> bool {
        self.plan.lasting == LastingTrouble::None
    }

    /// The finalizer of the operators.
    fn finalizer(&self) -> &'static str {
        &self.plan.setup.persistence.finalizer
    }

    /// Many edits within seconds, and calls that fail now and then, make many writes. No handler
    /// restores a former state.
    fn plan_haste(&mut self) {
        self.plan.edits_in_haste = true;
        self.plan.names = 1;
        self.plan.disturbances = 16;
        self.plan.bursts = 1;
        self.plan.behaviour.own_changes = 0;
        self.plan.behaviour.failures = 3;
        self.plan.is_rough = false;
    }

    fn create(&mut self, name: &str, choices: &mut Choices) -> Verb {
        self.edits += 1;
        let mut metadata = json!({"name": name});
        if choices.one_of(3) == 0 {
            metadata["labels"] = json!({(crate::operator::LABEL): "yes"});
        }
        Verb::Create {
            body: json!({
                "apiVersion": "kopf.test/v1", "kind": "Widget",
                "metadata": metadata, "spec": {"a": choices.one_of(3), "b": 0},
            }),
        }
    }

    fn request(&self, verb: Verb) -> ApiRequest {
        ApiRequest {
            user: "person".into(),
            kind: self.plan.kind,
            namespace: Some(NAMESPACE.into()),
            verb,
        }
    }

    fn reported(
        &mut self,
        sender: Sender,
        fact: &OperatorFact,
        phase: HistoryPhase,
        now: VirtualTime,
    ) -> Result<(), Violation> {
        match fact {
            OperatorFact::CallBegun(call) => self.call_begun(sender, call, phase, now),
            OperatorFact::CallEnded {
                uid,
                handler,
                finished,
            } => {
                self.objects.ended(sender, uid, handler, *finished);
                Ok(())
            }
            OperatorFact::CallCut { uid } => {
                self.objects.cut(sender, uid);
                Ok(())
            }
            OperatorFact::Sent {
                uid,
                call,
                has_records,
            } => {
                if self.plan.mode == CoordinationMode::Election {
                    self.leases.may_act(sender, now, "a write is sent")?;
                }
                self.objects.sent(sender, uid, *call, *has_records);
                Ok(())
            }
            OperatorFact::BackgroundStarted { uid, at } => {
                self.objects.background_started(sender, uid, *at)?;
                self.check_start(sender, uid)
            }
            OperatorFact::BackgroundEnded { uid, at } => {
                self.objects.background_ended(sender, uid, *at);
                Ok(())
            }
            OperatorFact::ReconcileBegun { .. }
            | OperatorFact::ReconcileEnded { .. }
            | OperatorFact::ChildSent { .. } => self.reconcile_reported(sender, fact, phase, now),
            OperatorFact::Trouble { problem, .. } if problem.contains("come to an end") => {
                Err(Violation::new("a call comes to an end", problem))
            }
            OperatorFact::EventCalled { uid, .. } => {
                self.objects.event_called(uid);
                Ok(())
            }
            OperatorFact::ReturnFound { uid } => self.check_return(uid),
            OperatorFact::StateKept { kept, .. } if *kept > MOST_KEPT_STATES => {
                let details = format!("{kept} states");
                Err(Violation::new("states that are kept have a limit", details))
            }
            OperatorFact::StateKept { .. } => Ok(()),
            OperatorFact::Stopping => {
                self.objects.stopping(sender);
                Ok(())
            }
            OperatorFact::Gate { .. } => {
                self.objects.period_begun(sender, now);
                self.lists.ended(sender);
                Ok(())
            }
            OperatorFact::Listed { uid, version } => self.lists.listed(sender, uid, version),
            OperatorFact::ListEnded => {
                self.lists.ended(sender);
                Ok(())
            }
            OperatorFact::Trouble { .. } => Ok(()),
        }
    }

    /// An attempt of a handler begins.
    fn call_begun(
        &mut self,
        sender: Sender,
        call: &BegunCall,
        phase: HistoryPhase,
        now: VirtualTime,
    ) -> Result<(), Violation> {
        if phase == HistoryPhase::Calm && self.comes_to_rest() {
            let details = format!("{} is called for {}", call.handler, call.uid);
            return Err(Violation::new("operators stay at rest", details));
        }
        if self.plan.mode == CoordinationMode::Election {
            self.leases.may_act(sender, now, "an attempt begins")?;
        }
        let leases = &self.leases;
        let mode = self.plan.mode;
        let concurs = |other: Sender| match mode {
            CoordinationMode::Alone => true,
            CoordinationMode::Peering => other.process == sender.process,
            CoordinationMode::Election => {
                other.process == sender.process || leases.is_valid(other, now)
            }
        };
        self.objects.begun(self.plan.setup, sender, call, concurs)?;
        self.resumed.check(sender, call)?;
        match self.plan.behaviour.worker_limit {
            Some(limit) => self.objects.check_worker_limit(sender, limit),
            None => Ok(()),
        }
    }

    /// A call of `reconcile` begins, ends, or sends a request for a child.
    fn reconcile_reported(
        &mut self,
        sender: Sender,
        fact: &OperatorFact,
        phase: HistoryPhase,
        now: VirtualTime,
    ) -> Result<(), Violation> {
        let is_elected = self.plan.mode == CoordinationMode::Election;
        match fact {
            OperatorFact::ReconcileBegun { uid, state, wanted } => {
                if phase == HistoryPhase::Calm && self.comes_to_rest() {
                    let details = format!("reconcile is called for {uid}");
                    return Err(Violation::new("operators stay at rest", details));
                }
                if is_elected {
                    self.leases.may_act(sender, now, "a call begins")?;
                }
                // Its record is a reason for a write, as that of an attempt is.
                self.objects.event_called(uid);
                self.children.begun(sender, uid, state, wanted);
                Ok(())
            }
            OperatorFact::ReconcileEnded { uid, succeeded } => {
                self.children.ended(sender, uid, *succeeded);
                Ok(())
            }
            OperatorFact::ChildSent { uid, name, deletes } => {
                if is_elected {
                    self.leases.may_act(sender, now, "a child is written")?;
                }
                let lasting = 1_000 * u32::from(!self.comes_to_rest());
                let bound = 100 + 20 * self.disturbances + lasting;
                self.children.sent(sender, uid, name, *deletes, bound)
            }
            _ => Ok(()),
        }
    }

    /// An object waits only for a state that has really returned.
    fn check_return(&self, uid: &str) -> Result<(), Violation> {
        // Webhooks, and peers that run at once for a while, undo writes.
        let undone = self.webhook_stamped
            || self.webhook_removed
            || self.plan.mode == CoordinationMode::Peering;
        match undone {
            true => Ok(()),
            false => self.returns.check(uid),
        }
    }

    /// A daemon starts for an object that cannot be deleted meanwhile.
    fn check_start(&self, sender: Sender, uid: &str) -> Result<(), Violation> {
        // A peer may have released the object meanwhile, or an earlier process.
        let shared = self.plan.mode == CoordinationMode::Peering;
        let excused =
            shared || self.finalizers_removed || self.objects.is_removed_late(sender, uid);
        match excused || self.objects.is_held(uid) {
            true => Ok(()),
            false => {
                let claim = "a daemon starts when the object has the finalizer";
                Err(Violation::new(claim, uid))
            }
        }
    }

    /// Checks a request of an operator for an object.
    fn executed(&mut self, landed: &Landed<'_>, phase: HistoryPhase) -> Result<(), Violation> {
        let calm = phase == HistoryPhase::Calm && self.comes_to_rest();
        if calm && (landed.changed || landed.request.verb.read_name().is_some()) {
            let details = format!("{:?}", landed.request.verb);
            return Err(Violation::new("operators stay at rest", details));
        }
        if !landed.request.verb.is_write() {
            let contended = self.contended.as_ref().map(|(name, _)| &**name);
            self.is_contended_read |= landed
                .request
                .verb
                .read_name()
                .is_some_and(|name| Some(name) == contended);
            let bounded = phase == HistoryPhase::Settling && self.comes_to_rest();
            return self.objects.read(landed, bounded);
        }
        let lasting = !self.comes_to_rest();
        let parts = 1 + u32::from(self.plan.setup.status_endpoint);
        // A write that is stamped is made again after each pause, of five seconds at the longest.
        let more = match lasting {
            true => 600,
            false => 40 * u32::from(self.webhook_stamped),
        };
        // For a minute each operator loses at most one write in a second.
        let more = more + 160 * self.contentions;
        let bounds = WriteBounds {
            requests: parts * (60 + 8 * self.disturbances) + more,
            disturbances: self.disturbances,
            // A webhook that stamps each write makes another state of it, which is written, too,
            // until the pauses for states that come again begin. Peers that run at once for a
            // while undo the changes of each other, up to the same pauses.
            reasons_known: !lasting
                && !self.webhook_stamped
                && self.plan.mode != CoordinationMode::Peering,
        };
        if let Some(object) = landed.answer.as_object().filter(|_| landed.changed) {
            self.returns.written(object);
        }
        let removes = self.webhook_removes && phase == HistoryPhase::Disturbed;
        self.objects.edits_unknown |= removes;
        self.objects
            .landed(self.plan.setup, landed, bounds, removes)?;
        self.check_release(landed)
    }

    /// Our finalizer goes only when nothing needs it any more.
    fn check_release(&mut self, landed: &Landed<'_>) -> Result<(), Violation> {
        let Some(object) = landed.answer.as_object().filter(|_| landed.changed) else {
            return Ok(());
        };
        let view = ObjectView::new(object);
        let Some(uid) = view.uid() else {
            return Ok(());
        };
        let held = is_present(view, self.finalizer());
        let is_release = self.objects.note_finalizer(uid, held);
        // Others may remove it along with a write of ours.
        let is_ours = match &landed.request.verb {
            Verb::Patch {
                patch: SimulatedPatch::Merge(patch) | SimulatedPatch::Json(patch),
                ..
            } => patch.to_string().contains("finalizers"),
            _ => false,
        };
        if !is_release || !is_ours {
            return Ok(());
        }
        self.objects.note_removal(uid, landed);
        self.objects
            .released(self.plan.setup, landed.sender, object)
    }

    fn note_disturbance(&mut self, request: &ApiRequest, answer: &ApiAnswer, now: VirtualTime) {
        self.disturbances += 1;
        if Some(request.kind) == self.plan.child_kind {
            self.children.disturbed(request, answer.is_success());
        }
        self.note_change(request, answer, now);
    }

    /// Another client may have changed an object.
    fn note_change(&mut self, request: &ApiRequest, answer: &ApiAnswer, now: VirtualTime) {
        if let Some(object) = answer.as_object()
            && request.kind == self.plan.kind
            && let Some(uid) = ObjectView::new(object).uid()
        {
            let removes = self.webhook_removes || disturbances::removes_facts(request);
            self.objects
                .disturbed(self.plan.setup, object, removes, now);
            match disturbances::removes_ours(request) {
                true => self.returns.stripped(uid),
                false => self.returns.written(object),
            }
            let held = is_present(ObjectView::new(object), self.finalizer());
            self.objects.note_finalizer(uid, held);
        }
    }
}

/// How the handlers of a history behave.
fn behaviour(choices: &mut Choices) -> Behaviour {
    let level = |choices: &mut Choices| choices.one_of(4);
    Behaviour {
        failures: level(choices),
        durations: level(choices),
        patches: level(choices),
        own_changes: level(choices),
        slowness: level(choices),
        worker_limit: *choices.item(&[None, None, Some(1), Some(2)]),
        salt: choices.one_of(1 << 30),
    }
}

impl Scenario for OperatorScenario {
    type Actor = SimulatedOperator;

    fn prepare(&mut self, server: &mut ApiServer, choices: &mut Choices) {
        let (setups, kinds) = (OperatorSetup::all(), ScenarioKinds::all());
        let mode = *choices.item(&[
            CoordinationMode::Alone,
            CoordinationMode::Alone,
            CoordinationMode::Election,
            CoordinationMode::Election,
            CoordinationMode::Peering,
            CoordinationMode::Peering,
        ]);
        let setup = choices.item(setups);
        let behaviour = behaviour(choices);
        server.create_namespace(NAMESPACE);
        let coordination_kind = match mode {
            CoordinationMode::Peering => server.define(Arc::clone(&kinds.peerings)),
            CoordinationMode::Alone | CoordinationMode::Election => {
                server.define(Arc::clone(&kinds.leases))
            }
        };
        let kind = server.define(Arc::clone(match setup.status_endpoint {
            true => &kinds.widgets_with_status,
            false => &kinds.widgets,
        }));
        self.plan = HistoryPlan {
            setup,
            behaviour,
            mode,
            kind,
            child_kind: None,
            changes_new_children: false,
            edits_in_haste: false,
            coordination_kind,
            names: 1 + choices.one_of(3) as usize,
            disturbances: *choices.item(&[4, 8, 8, 16]),
            bursts: *choices.item(&[0, 3]),
            emphasis: Emphasis::choose(choices),
            favourite_edit: choices.one_of(2 * EDITS).checked_sub(EDITS),
            is_rough: choices.one_of(3) > 0,
            lasting: LastingTrouble::choose(mode, choices),
        };
        self.objects.shared = mode == CoordinationMode::Peering;
        match self.plan.lasting {
            LastingTrouble::None | LastingTrouble::NoNamespace => {}
            LastingTrouble::Denial => {
                // Each change that is denied takes a minute, one after the other.
                self.plan.behaviour.own_changes = 0;
                server.set_webhooks(vec![self.denial(403)]);
            }
            LastingTrouble::Stamps => {
                self.webhook_stamped = true;
                server.set_webhooks(vec![self.stamp()]);
            }
        }
        if mode == CoordinationMode::Peering {
            server.handle(&ApiRequest {
                kind: coordination_kind,
                ..self.request(Verb::Create {
                    body: peering_object(),
                })
            });
        }
        for name in NAMES.iter().take(choices.one_of(4) as usize) {
            let verb = self.create(name, choices);
            let answer = server.handle(&self.request(verb));
            if let Some(object) = answer.as_object() {
                self.returns.written(object);
            }
        }
        // The last decision of all, so that histories without children stay as they are.
        if choices.one_of(4) == 3 && setup.selectors.is_empty() {
            self.plan.child_kind = Some(server.define(Arc::clone(&kinds.parts)));
            self.plan.changes_new_children = choices.one_of(3) == 2;
            if choices.one_of(3) == 2 {
                self.plan_haste();
            }
        }
    }

    fn limits(&self) -> HistoryLimits {
        HistoryLimits {
            processes: match self.plan.mode {
                CoordinationMode::Alone => 1,
                CoordinationMode::Election | CoordinationMode::Peering => 2,
            },
            disturbances: self.plan.disturbances,
            disturbed_for: Duration::from_secs(100),
            bursts: self.plan.bursts,
            settles_within: Duration::from_secs(300),
            stays_calm_for: Duration::from_secs(30),
            steps: match self.comes_to_rest() {
                true => 6_000,
                false => 30_000,
            },
            faults: match self.plan.is_rough {
                true => FaultPlan::rough(),
                false => FaultPlan::quiet(),
            },
            rules_last: !self.comes_to_rest(),
        }
    }

    fn actor(&self, process: usize, run: u32) -> SimulatedOperator {
        SimulatedOperator::new(OperatorOptions {
            setup: self.plan.setup,
            behaviour: self.plan.behaviour,
            mode: self.plan.mode,
            kind: self.plan.kind,
            child_kind: self.plan.child_kind,
            coordination_kind: self.plan.coordination_kind,
            coordination_namespace: match self.plan.lasting {
                LastingTrouble::NoNamespace => "nowhere",
                LastingTrouble::None | LastingTrouble::Denial | LastingTrouble::Stamps => NAMESPACE,
            },
            process,
            run: u64::from(run),
        })
    }

    fn disturbance(&mut self, server: &ApiServer, choices: &mut Choices) -> Disturbance {
        self.disturb(server, choices)
    }

    fn is_settled(&self, actors: &[&SimulatedOperator], since: VirtualTime) -> bool {
        // What never comes to rest is watched for the whole time.
        self.comes_to_rest()
            && actors.iter().filter(|it| it.runs()).count() == 1
            && actors.iter().all(|it| it.is_idle(since))
    }

    fn tend(&mut self, server: &mut ApiServer, phase: HistoryPhase) -> bool {
        let has_deleted = self.collect_garbage(server);
        let has_changed = match phase {
            HistoryPhase::Disturbed => {
                self.change_new_children(server) | self.overtake_reader(server)
            }
            HistoryPhase::Settling | HistoryPhase::Calm => self.remove_endless_peer(server),
        };
        has_deleted || has_changed
    }

    fn observe(
        &mut self,
        occurrence: &Occurrence<'_, OperatorFact>,
        server: &ApiServer,
    ) -> Result<(), Violation> {
        match occurrence {
            Occurrence::Reported {
                process,
                run,
                fact,
                phase,
            } => {
                let sender = Sender {
                    process: *process,
                    run: *run,
                };
                if matches!(fact, OperatorFact::Gate { running: true }) {
                    let objects = server.peek_all(self.plan.kind);
                    self.resumed.resumed(sender, objects.map(AsRef::as_ref));
                }
                self.reported(sender, fact, *phase, server.now())
            }
            Occurrence::Executed {
                process,
                run,
                call,
                sent,
                request,
                answer,
                changed,
                phase,
            } => {
                let sender = Sender {
                    process: *process,
                    run: *run,
                };
                if request.kind == self.plan.kind {
                    let landed = Landed {
                        sender,
                        call: *call,
                        sent: *sent,
                        now: server.now(),
                        request,
                        answer,
                        changed: *changed,
                    };
                    return self.executed(&landed, *phase);
                }
                if Some(request.kind) == self.plan.child_kind {
                    let is_list = matches!(request.verb, Verb::List(_));
                    if *phase == HistoryPhase::Calm && self.comes_to_rest() && !is_list {
                        let details = format!("{:?}", request.verb);
                        return Err(Violation::new("operators stay at rest", details));
                    }
                    return Ok(());
                }
                if self.plan.mode == CoordinationMode::Election {
                    self.leases.check_pauses(answer)?;
                }
                if self.plan.mode == CoordinationMode::Election && *changed {
                    self.leases.granted(sender, *sent, answer);
                }
                Ok(())
            }
            Occurrence::Disturbed { request, answer } => {
                self.note_disturbance(request, answer, server.now());
                Ok(())
            }
            Occurrence::Ended { process } => {
                self.disturbances += 1;
                self.leases.ended(*process);
                self.objects.process_ended(*process);
                Ok(())
            }
        }
    }

    fn at_rest(
        &mut self,
        server: &ApiServer,
        actors: &[&SimulatedOperator],
    ) -> Result<(), Violation> {
        match self.plan.lasting {
            LastingTrouble::None => self.check_rest(server, actors),
            LastingTrouble::Denial | LastingTrouble::Stamps => check_work(server, actors),
            LastingTrouble::NoNamespace => Ok(()),
        }
    }
}

/// No worker waits for ever for a write that is denied.
fn check_work(server: &ApiServer, actors: &[&SimulatedOperator]) -> Result<(), Violation> {
    let now = Duration::from_millis(server.now().millis());
    let works = actors.iter().filter_map(|it| it.oldest_work());
    match works.min() {
        Some(begun) if now.saturating_sub(begun) > LONGEST_WORK => {
            let details = format!("since {begun:?}");
            Err(Violation::new("no worker waits for ever", details))
        }
        _ => Ok(()),
    }
}

fn widgets(status_endpoint: bool) -> KindDefinition {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let subresources = match status_endpoint {
        true => json!({"status": {}}),
        false => json!({}),
    };
    KindDefinition::from_crd(&json!({"spec": {
        "group": "kopf.test", "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": true, "subresources": subresources,
            "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": any, "status": any}}}}],
    }}))
}

fn peerings() -> KindDefinition {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    KindDefinition::from_crd(&json!({"spec": {
        "group": "kopf.dev", "scope": "Namespaced",
        "names": {"kind": "KopfPeering", "plural": "kopfpeerings"},
        "versions": [{"name": "v1", "served": true, "subresources": {},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": any}}}}],
    }}))
}

/// The text of a field of the metadata.
fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}
