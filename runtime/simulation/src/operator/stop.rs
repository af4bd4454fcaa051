//! The stop of an operator: what the runtime does in `operator::orchestrate`.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::background::stopping::StopReason;
use kopf_core::shutdown::StopTimes;

use super::coordination::uptime;
use super::{CallPurpose, OperatorFact, SimulatedKey, SimulatedOperator, TimerPurpose};
use crate::world::ActorEffect;

/// The time to give up the Lease, or the record of the process.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// A part of the stop of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopPhase {
    /// Workers and daemons end.
    Draining,
    /// Others may act.
    Leaving,
    Exited,
}

impl SimulatedOperator {
    /// Whether it was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Nothing new begins; what has begun may end.
    pub(super) fn begin_stop(&mut self) {
        if self.stop.is_some() {
            return;
        }
        self.stop = Some(StopPhase::Draining);
        self.report(OperatorFact::Stopping);
        self.restart_stream(self.reading());
        self.background
            .stop_all(StopReason::OperatorExiting, uptime(self.clock));
        self.set_timer(TimerPurpose::Grace, StopTimes::default().grace);
        let waiting: Vec<Arc<SimulatedKey>> = self.workers.keys().cloned().collect();
        for key in waiting {
            self.stop_worker_pause(&key);
        }
        if planted!(LeaseReleasedAtStop)
            && let Some(verb) = self.coordination.leave(self.clock)
        {
            self.send(CallPurpose::Leave, self.options.coordination_kind, verb);
        }
    }

    /// Goes on with the stop when everything has ended.
    pub(super) fn go_on_with_stop(&mut self) {
        let is_drained = self.workers.is_empty() && self.background.has_ended();
        if self.stop == Some(StopPhase::Draining) && is_drained {
            self.leave();
        }
    }

    /// Nothing waits any longer for what has not ended.
    pub(super) fn end_grace(&mut self) {
        if self.stop != Some(StopPhase::Draining) {
            return;
        }
        for key in std::mem::take(&mut self.workers).into_keys() {
            self.report(OperatorFact::CallCut { uid: key.uid });
        }
        self.calls.retain(|_, it| {
            let is_of_work = matches!(it, CallPurpose::Worker(_) | CallPurpose::Background(_));
            !is_of_work
        });
        self.leave();
    }

    /// Other operators may act only when nothing runs here any more.
    fn leave(&mut self) {
        self.stop = Some(StopPhase::Leaving);
        self.calls.retain(|_, it| *it != CallPurpose::Coordination);
        match self.coordination.leave(self.clock) {
            Some(verb) => {
                let kind = self.options.coordination_kind;
                self.send(CallPurpose::Leave, kind, verb);
                self.set_timer(TimerPurpose::Leave, LEAVE_TIMEOUT);
            }
            None => self.exit(),
        }
    }

    pub(super) fn exit(&mut self) {
        if self.stop == Some(StopPhase::Leaving) {
            self.stop = Some(StopPhase::Exited);
            self.effects.push(ActorEffect::Exit);
        }
    }
}
