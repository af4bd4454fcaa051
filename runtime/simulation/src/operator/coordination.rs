//! Leader election and peering of an operator: who runs and who pauses.

use std::time::Duration;

use kopf_core::election::LeaseTimings;
use kopf_core::election::elector::{ElectionAnswer, ElectionEffect, ElectionIdentity, Elector};
use kopf_core::object::ObjectView;
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::pause::{PauseChange, PauseState};
use kopf_core::peering::{OwnPeer, Peer, PeeringAction, Peers, Ties, keepalive, removal};
use kopf_core::time::ClockReading;
use serde_json::{Value, json};

use crate::server::{Endpoint, ServerEvent, ServerEventType, SimulatedPatch, Verb};
use crate::time::VirtualTime;
use crate::world::{ActorClock, CallOutcome};

/// The name of the Lease and of the peering object.
pub(crate) const NAME: &str = "operator";

/// The lifetime of a peering record.
const LIFETIME: Duration = Duration::from_secs(40);

/// The way in which operators share their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoordinationMode {
    /// There is one operator.
    Alone,
    /// The holder of a Lease runs.
    Election,
    /// The operator with the highest priority runs.
    Peering,
}

/// The parts that can pause an operator.
pub(crate) struct Coordination {
    pub(crate) pauses: PauseState<&'static str, Duration>,
    part: CoordinationPart,
    /// The last time at which a request of it was accepted.
    accepted: VirtualTime,
}

enum CoordinationPart {
    None,
    Election {
        slot: usize,
        elector: Box<Elector>,
    },
    Peering {
        slot: usize,
        own: Peer,
        peers: Peers,
        known: bool,
        renew_at: Duration,
        /// The records whose removal was requested, which is done once.
        removed: Vec<String>,
    },
}

/// The next step of a coordination.
#[derive(Debug)]
pub(crate) enum CoordinationStep {
    /// Sends a request, and gives up waiting for its answer after this time.
    Send(Verb, Duration),
    /// Wakes up after this time.
    Wait(Duration),
    /// Nothing.
    Nothing,
}

/// The timings of the Lease; longer than the defaults, so that histories are shorter.
pub(crate) fn timings() -> LeaseTimings {
    LeaseTimings {
        duration: Duration::from_secs(60),
        renew_deadline: Duration::from_secs(40),
        retry_period: Duration::from_secs(15),
    }
}

// === impl Coordination ===

impl Coordination {
    /// `run` is the number of the process's start, as identities of leaders never come again.
    pub(crate) fn new(mode: CoordinationMode, namespace: &str, process: usize, run: u64) -> Self {
        let mut pauses = PauseState::default();
        let part = match mode {
            CoordinationMode::Alone => CoordinationPart::None,
            CoordinationMode::Election => {
                let slot = pauses.take_slot(Some("starting"));
                pauses.change(slot, PauseChange::Forbid("starting"), Duration::ZERO);
                let identity = ElectionIdentity {
                    name: NAME.to_owned(),
                    namespace: namespace.to_owned(),
                    identity: format!("operator-{process}-{run}"),
                };
                let elector = Box::new(Elector::new(identity, timings()));
                CoordinationPart::Election { slot, elector }
            }
            CoordinationMode::Peering => CoordinationPart::Peering {
                slot: pauses.take_slot(Some("starting")),
                own: Peer {
                    identity: format!("operator-{process}"),
                    priority: i64::try_from(process).unwrap_or_default(),
                    lifetime: LIFETIME,
                    lastseen: jiff::Timestamp::UNIX_EPOCH,
                },
                peers: Peers::default(),
                known: false,
                renew_at: Duration::ZERO,
                removed: Vec::new(),
            },
        };
        Self {
            pauses,
            part,
            accepted: VirtualTime::default(),
        }
    }

    pub(crate) fn begin(&mut self, clock: ActorClock) -> CoordinationStep {
        match &mut self.part {
            CoordinationPart::None => CoordinationStep::Nothing,
            CoordinationPart::Election { elector, .. } => {
                let effect = elector.begin();
                send(&effect, elector.request_timeout())
            }
            CoordinationPart::Peering { .. } => self.go_on(clock),
        }
    }

    /// Goes on after a timer, an answer or an event: first reports, then steps.
    pub(crate) fn go_on(&mut self, clock: ActorClock) -> CoordinationStep {
        let now = uptime(clock);
        match &mut self.part {
            CoordinationPart::None => CoordinationStep::Nothing,
            CoordinationPart::Election { slot, elector } => {
                let change = match elector.candidate().holds_until(now) {
                    Some(until) => PauseChange::ResumeUntil(until),
                    None => PauseChange::Forbid("standby"),
                };
                self.pauses.change(*slot, change, now);
                match elector.step(now, clock.wall) {
                    ElectionEffect::Wait(wait) => CoordinationStep::Wait(wait),
                    effect => send(&effect, elector.request_timeout()),
                }
            }
            CoordinationPart::Peering {
                slot,
                own,
                peers,
                known,
                renew_at,
                removed,
            } => {
                if *renew_at <= now {
                    *renew_at = now + keepalive(LIFETIME, Duration::from_secs(10));
                    own.lastseen = kopf_core::time::to_micros(clock.wall);
                    return CoordinationStep::Send(patch(own.announcement()), LIFETIME / 4);
                }
                let decision = peers.decide(&own_peer(own), reading(clock));
                let change = match decision.action {
                    PeeringAction::Run if *known => PauseChange::Resume,
                    PeeringAction::Run => PauseChange::Pause("starting"),
                    _ => PauseChange::Pause("peers"),
                };
                if self.pauses.pause().is_some() || !matches!(change, PauseChange::Resume) {
                    self.pauses.change(*slot, change, now);
                }
                let former = std::mem::replace(removed, decision.dead);
                let fresh = removed.iter().filter(|it| !former.contains(it));
                let fresh: Vec<&str> = fresh.map(String::as_str).collect();
                if !fresh.is_empty() {
                    return CoordinationStep::Send(patch(removal(fresh)), LIFETIME / 4);
                }
                let recheck_at = decision.recheck.map_or(*renew_at, |wait| now + wait);
                let wait = recheck_at.min(*renew_at).saturating_sub(now);
                CoordinationStep::Wait(wait.max(Duration::from_millis(100)))
            }
        }
    }

    /// Lets others act: this process does not act any more.
    pub(crate) fn leave(&mut self, clock: ActorClock) -> Option<Verb> {
        let now = uptime(clock);
        match &mut self.part {
            CoordinationPart::None => None,
            CoordinationPart::Election { slot, elector } => {
                let free = elector.release(now, clock.wall);
                if !planted!(LeaseReleasedAtStop) {
                    self.pauses
                        .change(*slot, PauseChange::Forbid("stopped"), now);
                }
                free.map(patch)
            }
            CoordinationPart::Peering { slot, own, .. } => {
                self.pauses
                    .change(*slot, PauseChange::Pause("stopped"), now);
                Some(patch(removal([own.identity.as_str()])))
            }
        }
    }

    /// Whether a request of it was accepted since then, or none is needed.
    pub(crate) fn was_accepted_since(&self, then: VirtualTime) -> bool {
        matches!(self.part, CoordinationPart::None) || self.accepted >= then
    }

    /// Takes the answer to the last request.
    pub(crate) fn answered(
        &mut self,
        outcome: &CallOutcome,
        clock: ActorClock,
    ) -> CoordinationStep {
        if matches!(outcome, CallOutcome::Answered(answer) if answer.is_success()) {
            self.accepted = clock.now;
        }
        match &mut self.part {
            CoordinationPart::None => return CoordinationStep::Nothing,
            CoordinationPart::Election { elector, .. } => {
                let answer = election_answer(outcome);
                if let Some(effect) = elector.answered(answer, uptime(clock), 0.5) {
                    return send(&effect, elector.request_timeout());
                }
            }
            CoordinationPart::Peering {
                peers,
                known,
                renew_at,
                ..
            } => match outcome {
                CallOutcome::Answered(answer) if answer.is_success() => {
                    if let Some(object) = answer.as_object() {
                        peers.observe(object, reading(clock));
                        *known = true;
                    }
                }
                _ => *renew_at = uptime(clock) + Duration::from_secs(2),
            },
        }
        self.go_on(clock)
    }

    /// Takes an event of the Lease or of the peering object.
    pub(crate) fn observe(&mut self, event: &ServerEvent, clock: ActorClock) {
        let gone = match event.event_type {
            ServerEventType::Added | ServerEventType::Modified => false,
            ServerEventType::Deleted => true,
            ServerEventType::Bookmark | ServerEventType::Error => return,
        };
        match &mut self.part {
            CoordinationPart::None => {}
            CoordinationPart::Election { elector, .. } => {
                let version = ObjectView::new(&event.object).resource_version();
                let version = version.map(ResourceVersion::new);
                let object = (!gone).then(|| Value::clone(&event.object));
                elector.observe_event(version.as_ref(), object, uptime(clock));
            }
            CoordinationPart::Peering { peers, known, .. } => {
                if gone {
                    peers.clear();
                } else {
                    peers.observe(&event.object, reading(clock));
                }
                *known = true;
            }
        }
    }
}

/// The time since the start of the history, which every process counts alike.
pub(crate) fn uptime(clock: ActorClock) -> Duration {
    Duration::from_millis(clock.now.millis())
}

fn reading(clock: ActorClock) -> ClockReading {
    ClockReading {
        wall: clock.wall,
        uptime: uptime(clock),
    }
}

fn own_peer(own: &Peer) -> OwnPeer {
    OwnPeer {
        identity: own.identity.clone(),
        priority: own.priority,
        ties: Ties::Pause,
    }
}

fn send(effect: &ElectionEffect, limit: Duration) -> CoordinationStep {
    let verb = match effect {
        ElectionEffect::Get => Verb::Get { name: NAME.into() },
        ElectionEffect::Create(lease) => Verb::Create {
            body: lease.clone(),
        },
        ElectionEffect::Patch(body) => patch(body.clone()),
        ElectionEffect::Wait(wait) => return CoordinationStep::Wait(*wait),
    };
    CoordinationStep::Send(verb, limit)
}

fn patch(body: Value) -> Verb {
    Verb::Patch {
        name: NAME.into(),
        endpoint: Endpoint::Object,
        patch: SimulatedPatch::Merge(body),
    }
}

fn election_answer(outcome: &CallOutcome) -> ElectionAnswer {
    match outcome {
        CallOutcome::Answered(answer) => match (answer.code, answer.as_object()) {
            (200..300, Some(object)) => ElectionAnswer::Lease(Value::clone(object)),
            (409, _) => ElectionAnswer::Conflict,
            (404, _) => ElectionAnswer::NotFound,
            (code, _) => ElectionAnswer::Failed {
                reason: format!("status {code}"),
                lasts: code == 403,
            },
        },
        CallOutcome::ConnectionLost | CallOutcome::TimedOut => ElectionAnswer::Failed {
            reason: "no answer".to_owned(),
            lasts: false,
        },
    }
}

/// The peering object.
pub(crate) fn peering_object() -> Value {
    json!({"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": NAME}})
}
