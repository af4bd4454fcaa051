//! Acquires and renews a Lease: which request to send, and what each answer means.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Candidate, ElectionStep, Lease, LeaseTimings};
use crate::{machine::growing_pause::GrowingPause, object::resource_version::ResourceVersion};

/// The longest pause between requests that fail for want of a namespace or of a permission.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The identity of a replica, and the Lease that it wants to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionIdentity {
    /// The name of the Lease.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Different from that of any other process, even an earlier one in the same pod.
    pub identity: String,
}

/// The next step of a replica.
#[derive(Clone, Debug, PartialEq)]
pub enum ElectionEffect {
    /// Read the Lease.
    Get,
    /// Create the Lease.
    Create(Value),
    /// Patch the Lease; the API server rejects it if another process has written since.
    Patch(Value),
    /// Wait for so long, unless the Lease changes.
    Wait(Duration),
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ElectionAnswer {
    /// The Lease.
    Lease(Value),
    /// Another process was faster.
    Conflict,
    /// The Lease does not exist; as the answer to a creation, its namespace does not exist.
    NotFound,
    /// The request failed.
    Failed {
        /// The reason.
        reason: String,
        /// Whether the same request fails until a person does something about it.
        lasts: bool,
    },
}

/// A replica that takes part in an election. All times are its own uptime.
#[derive(Clone, Debug)]
pub struct Elector {
    lease: ElectionIdentity,
    timings: LeaseTimings,
    candidate: Candidate,
    /// The last known state of the Lease.
    object: Option<Value>,
    /// The pauses between requests that fail for want of a namespace or of a permission.
    pauses: GrowingPause,
    phase: ElectionPhase,
    failure: Option<String>,
}

/// The request under way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ElectionPhase {
    /// None.
    Idle,
    /// The Lease is read; a failure changes nothing.
    Read,
    /// The Lease is read, as a claim conflicts with it; this was its version.
    ReadAfterConflict(Option<String>),
    /// The Lease is claimed by a request that was sent at this time.
    Claim { sent: Duration, creates: bool },
}

// === impl Elector ===

impl Elector {
    /// A replica that has not observed the Lease; [`begin`](Self::begin) is its first effect.
    #[must_use]
    pub fn new(lease: ElectionIdentity, timings: LeaseTimings) -> Self {
        Self {
            candidate: Candidate::new(lease.identity.clone(), timings),
            pauses: GrowingPause::new(timings.retry_period, LONGEST_PAUSE),
            lease,
            timings,
            object: None,
            phase: ElectionPhase::Idle,
            failure: None,
        }
    }

    /// The first effect.
    pub fn begin(&mut self) -> ElectionEffect {
        self.phase = ElectionPhase::Read;
        ElectionEffect::Get
    }

    /// The replica as the election sees it.
    #[must_use]
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// The time limit of a request, so that there is time for another one before the renew deadline.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.timings.renew_deadline / 2
    }

    /// Takes the failure of the last request, to be reported.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// The next effect; the time for which it asks to wait may be interrupted by
    /// [`observe_event`](Self::observe_event).
    pub fn step(&mut self, now: Duration, wall: Timestamp) -> ElectionEffect {
        match self.candidate.step(now) {
            ElectionStep::Wait(wait) => ElectionEffect::Wait(wait),
            ElectionStep::Acquire | ElectionStep::Renew => {
                let creates = self.candidate.version().is_none();
                self.phase = ElectionPhase::Claim { sent: now, creates };
                self.claim(wall)
            }
        }
    }

    /// Takes the answer to a request; returns another request if one has to follow at once.
    /// `chance` is from 0 to 1.
    pub fn answered(
        &mut self,
        answer: ElectionAnswer,
        now: Duration,
        chance: f64,
    ) -> Option<ElectionEffect> {
        match std::mem::replace(&mut self.phase, ElectionPhase::Idle) {
            ElectionPhase::Idle => {}
            ElectionPhase::Read => self.read(answer, now).unwrap_or_default(),
            ElectionPhase::ReadAfterConflict(before) => match self.read(answer, now) {
                Ok(()) => {
                    let unchanged = self.candidate.version() == before.as_deref();
                    if unchanged || self.candidate.other_holder().is_some() {
                        self.candidate.refused(now);
                    }
                }
                Err((reason, lasts)) => self.failed(reason, lasts, now, chance),
            },
            ElectionPhase::Claim { sent, creates } => {
                return self.claimed(answer, sent, creates, now, chance);
            }
        }
        None
    }

    fn claimed(
        &mut self,
        answer: ElectionAnswer,
        sent: Duration,
        creates: bool,
        now: Duration,
        chance: f64,
    ) -> Option<ElectionEffect> {
        match answer {
            ElectionAnswer::Lease(object) => {
                match read(&object) {
                    Some(lease) => {
                        self.object = Some(object);
                        self.candidate.granted(lease, sent, now);
                        self.pauses.reset();
                    }
                    None => {
                        let reason = "the response is not a Lease".to_owned();
                        self.failed(reason, false, now, chance);
                    }
                }
                return None;
            }
            // A collection always exists: what is missing is the namespace around it.
            ElectionAnswer::NotFound if creates && planted!(ElectionHotLoop) => {
                self.phase = ElectionPhase::Read;
            }
            ElectionAnswer::NotFound if creates => {
                let reason = format!("the namespace \"{}\" does not exist", self.lease.namespace);
                self.failed(reason, true, now, chance);
                self.phase = ElectionPhase::Read;
            }
            ElectionAnswer::Conflict | ElectionAnswer::NotFound => {
                let before = self.candidate.version().map(str::to_owned);
                self.phase = ElectionPhase::ReadAfterConflict(before);
            }
            ElectionAnswer::Failed { reason, lasts } => {
                self.failed(reason, lasts, now, chance);
                self.phase = ElectionPhase::Read;
            }
        }
        Some(ElectionEffect::Get)
    }

    fn failed(&mut self, reason: String, lasts: bool, now: Duration, chance: f64) {
        self.failure = Some(reason);
        self.candidate.refused(now);
        if lasts {
            let pause = self.pauses.next(None, chance);
            self.candidate.postpone(now, pause);
        }
    }

    /// Takes the Lease as it was read; after a failure its last known state stays.
    fn read(&mut self, answer: ElectionAnswer, now: Duration) -> Result<(), (String, bool)> {
        match answer {
            ElectionAnswer::Lease(object) => self.observe(Some(object), now),
            ElectionAnswer::NotFound => self.observe(None, now),
            ElectionAnswer::Conflict => {}
            ElectionAnswer::Failed { reason, lasts } => return Err((reason, lasts)),
        }
        Ok(())
    }

    /// Observes a watch event, unless it is older than the response to the last request. A deleted
    /// Lease has no object.
    pub fn observe_event(
        &mut self,
        version: Option<&ResourceVersion>,
        object: Option<Value>,
        now: Duration,
    ) {
        let known = self.candidate.version().map(ResourceVersion::new);
        match (version, known) {
            (Some(seen), Some(known)) if seen.is_not_newer_than(&known) => {}
            _ => self.observe(object, now),
        }
    }

    fn observe(&mut self, object: Option<Value>, now: Duration) {
        self.candidate.observe(object.as_ref().and_then(read), now);
        self.object = object;
    }

    fn claim(&self, wall: Timestamp) -> ElectionEffect {
        let renewed = format!("{wall:.6}");
        let spec = self.object.as_ref().map(|object| &object["spec"]);
        let held = spec.is_some_and(|spec| spec["holderIdentity"] == *self.lease.identity);
        let mut claim = json!({
            "holderIdentity": self.lease.identity,
            "leaseDurationSeconds": self.timings.duration.as_secs(),
            "renewTime": renewed,
        });
        if !held {
            let before = spec.and_then(|spec| spec["leaseTransitions"].as_i64());
            claim["acquireTime"] = renewed.into();
            claim["leaseTransitions"] = before.map_or(0, |count| count.saturating_add(1)).into();
        }
        match self.candidate.version() {
            Some(version) => ElectionEffect::Patch(patch(version, &claim)),
            None => ElectionEffect::Create(json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.lease.name, "namespace": self.lease.namespace},
                "spec": claim,
            })),
        }
    }

    /// Gives the lease up: this replica may no longer act. Returns the patch that lets another
    /// replica acquire it at once; none if this replica does not hold it.
    pub fn release(&mut self, now: Duration, wall: Timestamp) -> Option<Value> {
        let holds = self.candidate.holds_until(now).is_some();
        self.candidate.resign();
        let version = self.candidate.version().filter(|_| holds)?;
        Some(free(version, wall))
    }

    /// The patch that gives up the lease in this state of it, which is not the one that
    /// [`release`](Self::release) knew: a renewal whose answer is missing may have been executed.
    /// None if this replica does not hold it.
    #[must_use]
    pub fn release_as_read(&self, lease: &Value, wall: Timestamp) -> Option<Value> {
        let lease = read(lease)?;
        let is_ours = lease.holder.as_deref() == Some(self.candidate.identity());
        is_ours.then(|| free(&lease.version, wall))
    }
}

fn free(version: &str, wall: Timestamp) -> Value {
    let renewed = format!("{wall:.6}");
    let spec = json!({"holderIdentity": null, "leaseDurationSeconds": 1, "renewTime": renewed});
    patch(version, &spec)
}

fn patch(version: &str, spec: &Value) -> Value {
    json!({"metadata": {"resourceVersion": version}, "spec": spec})
}

fn read(object: &Value) -> Option<Lease> {
    let spec = &object["spec"];
    let holder = spec["holderIdentity"].as_str();
    let seconds = spec["leaseDurationSeconds"].as_u64().unwrap_or_default();
    Some(Lease {
        holder: holder.filter(|it| !it.is_empty()).map(str::to_owned),
        duration: Duration::from_secs(seconds),
        version: object["metadata"]["resourceVersion"].as_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elector() -> Elector {
        let lease = ElectionIdentity {
            name: "operator".to_owned(),
            namespace: "nowhere".to_owned(),
            identity: "me".to_owned(),
        };
        Elector::new(lease, LeaseTimings::default())
    }

    #[test]
    fn a_missing_namespace_makes_no_hot_loop() {
        let mut elector = elector();
        let (mut now, mut requests) = (Duration::ZERO, 0);
        assert_eq!(elector.begin(), ElectionEffect::Get);
        let mut next = elector.answered(ElectionAnswer::NotFound, now, 1.0);
        while now < Duration::from_secs(60) {
            match next.take() {
                Some(_) => next = elector.answered(ElectionAnswer::NotFound, now, 1.0),
                None => match elector.step(now, Timestamp::UNIX_EPOCH) {
                    ElectionEffect::Wait(wait) => now += wait,
                    effect => next = Some(effect),
                },
            }
            requests += 1;
        }
        assert!(requests < 40, "{requests} requests in a minute");
        let failure = elector.take_failure().expect("a reason");
        assert!(failure.contains("nowhere"), "{failure}");
    }

    #[test]
    fn a_lease_that_has_changed_meanwhile_is_released_by_its_holder_only() {
        let lease = |holder: &str| {
            json!({
                "metadata": {"resourceVersion": "8"},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60},
            })
        };
        let elector = elector();
        let own = elector.candidate().identity().to_owned();
        let wall = Timestamp::UNIX_EPOCH;
        let patch = elector.release_as_read(&lease(&own), wall).unwrap();
        assert_eq!(patch["metadata"]["resourceVersion"], "8");
        assert_eq!(patch["spec"]["holderIdentity"], Value::Null);
        assert_eq!(elector.release_as_read(&lease("another"), wall), None);
    }

    #[test]
    fn a_claim_that_lost_a_race_is_repeated_only_if_the_lease_is_free() {
        let mut elector = elector();
        let at = Duration::from_secs;
        let lease = |holder: &str, version: &str| {
            ElectionAnswer::Lease(json!({"metadata": {"resourceVersion": version},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}))
        };
        elector.begin();
        assert_eq!(elector.answered(lease("", "1"), at(0), 0.0), None);
        let step = elector.step(at(1), Timestamp::UNIX_EPOCH);
        assert!(matches!(step, ElectionEffect::Patch(_)));
        let next = elector.answered(ElectionAnswer::Conflict, at(1), 0.0);
        assert_eq!(next, Some(ElectionEffect::Get));
        assert_eq!(elector.answered(lease("other", "2"), at(1), 0.0), None);
        let step = elector.step(at(1), Timestamp::UNIX_EPOCH);
        assert_eq!(step, ElectionEffect::Wait(at(15)));
        assert_eq!(elector.candidate().other_holder(), Some("other"));
    }
}
