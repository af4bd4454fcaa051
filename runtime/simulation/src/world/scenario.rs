//! What a history plays: the objects, the operators, the disturbances, and the claims.

use std::fmt;
use std::time::Duration;

use super::actor::Actor;
use crate::choices::Choices;
use crate::faults::FaultPlan;
use crate::server::{AccessRule, AdmissionRule, ApiAnswer, ApiRequest, ApiServer};
use crate::time::VirtualTime;

/// The content of histories, with the claims that must hold in them.
pub trait Scenario {
    /// The operator.
    type Actor: Actor;

    /// Defines the kinds, and creates the first objects.
    fn prepare(&mut self, server: &mut ApiServer, choices: &mut Choices);

    /// The size of a history that is prepared.
    fn limits(&self) -> HistoryLimits;

    /// The program of a process, at its start or after a crash; `run` counts its starts.
    fn actor(&self, process: usize, run: u32) -> Self::Actor;

    /// The next thing that others do.
    fn disturbance(&mut self, server: &ApiServer, choices: &mut Choices) -> Disturbance;

    /// Does what controllers of the cluster do at any time; returns whether anything has changed.
    fn tend(&mut self, _server: &mut ApiServer, _phase: HistoryPhase) -> bool {
        false
    }

    /// Checks what has just happened.
    fn observe(
        &mut self,
        occurrence: &Occurrence<'_, <Self::Actor as Actor>::Fact>,
        server: &ApiServer,
    ) -> Result<(), Violation>;

    /// Whether the operators need no more time to come to rest; nothing has disturbed them since
    /// then.
    fn is_settled(&self, actors: &[&Self::Actor], since: VirtualTime) -> bool;

    /// Checks the end of a history, with the processes that run.
    fn at_rest(&mut self, server: &ApiServer, actors: &[&Self::Actor]) -> Result<(), Violation>;
}

/// The size of a history.
#[derive(Debug, Clone)]
pub struct HistoryLimits {
    /// The number of operator processes.
    pub processes: usize,
    /// The highest number of disturbances.
    pub disturbances: usize,
    /// The time in which they happen.
    pub disturbed_for: Duration,
    /// The number of bursts in which they come; at any time if it is zero.
    pub bursts: u32,
    /// The time that operators have to come to rest afterwards.
    pub settles_within: Duration,
    /// The time for which they must stay at rest.
    pub stays_calm_for: Duration,
    /// The highest number of steps.
    pub steps: u64,
    /// The faults while there are disturbances.
    pub faults: FaultPlan,
    /// Whether webhooks and missing permissions outlast the disturbances.
    pub rules_last: bool,
}

/// Something that others do to the objects, to the API server or to the operators.
#[derive(Debug)]
pub enum Disturbance {
    /// Another client sends a request.
    Request(ApiRequest),
    /// A process is killed, and started again later.
    Crash {
        /// The process.
        process: usize,
        /// The time until it starts again.
        down_for: Duration,
    },
    /// A process is asked to stop, and started again after its end.
    Stop {
        /// The process.
        process: usize,
        /// The time from its end until it starts again.
        down_for: Duration,
    },
    /// A process stands still: everything reaches it later.
    Freeze {
        /// The process.
        process: usize,
        /// The time for which it stands still.
        time: Duration,
    },
    /// The clock of a process jumps.
    ClockJump {
        /// The process.
        process: usize,
        /// The jump in milliseconds.
        millis: i64,
    },
    /// The API server forgets all writes but the last ones.
    Compact {
        /// The number of writes that it remembers.
        keep: usize,
    },
    /// The connections of all watches break.
    CutWatches,
    /// Other webhooks are configured; they are removed when the disturbances end.
    Webhooks(Vec<AdmissionRule>),
    /// Other permissions are missing; they are granted when the disturbances end.
    Access(Vec<AccessRule>),
}

/// The part of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryPhase {
    /// Others disturb the operators, and requests may fail.
    Disturbed,
    /// The operators come to rest.
    Settling,
    /// The operators are at rest.
    Calm,
}

/// Something that has just happened.
#[derive(Debug)]
pub enum Occurrence<'a, F> {
    /// The API server has executed a request of an operator.
    Executed {
        /// The process.
        process: usize,
        /// The number of its start.
        run: u32,
        /// The number that the process gave to the request.
        call: u64,
        /// The time at which it was sent.
        sent: VirtualTime,
        /// The request.
        request: &'a ApiRequest,
        /// The answer, which the process may never get.
        answer: &'a ApiAnswer,
        /// Whether an object has changed.
        changed: bool,
        /// The part of the history.
        phase: HistoryPhase,
    },
    /// Another client has sent a request.
    Disturbed {
        /// The request.
        request: &'a ApiRequest,
        /// The answer.
        answer: &'a ApiAnswer,
    },
    /// A process has reported a fact.
    Reported {
        /// The process.
        process: usize,
        /// The number of its start.
        run: u32,
        /// The fact.
        fact: &'a F,
        /// The part of the history.
        phase: HistoryPhase,
    },
    /// A process was killed, or has exited.
    Ended {
        /// The process.
        process: usize,
    },
}

/// A claim that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The claim.
    pub claim: &'static str,
    /// What contradicts it.
    pub details: String,
}

// === impl Violation ===

impl Violation {
    /// A claim that does not hold.
    pub fn new(claim: &'static str, details: impl Into<String>) -> Self {
        Self {
            claim,
            details: details.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.claim, self.details)
    }
}
