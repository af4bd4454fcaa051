//! The requests, the timers and the watch of the coordination.

use super::coordination::{CoordinationStep, NAME};
use super::stop::StopPhase;
use super::{CallPurpose, SimulatedOperator, TimerPurpose, WatchPurpose};
use crate::server::{ServerEvent, WatchOptions};
use crate::world::CallOutcome;

impl SimulatedOperator {
    pub(super) fn coordinate(&mut self, step: CoordinationStep) {
        match step {
            CoordinationStep::Nothing => {}
            CoordinationStep::Wait(wait) => {
                self.timers
                    .retain(|_, it| *it != TimerPurpose::Coordination);
                self.set_timer(TimerPurpose::Coordination, wait);
            }
            CoordinationStep::Send(verb, limit) => {
                let kind = self.options.coordination_kind;
                let call = self.send(CallPurpose::Coordination, kind, verb);
                self.set_timer(TimerPurpose::CoordinationTimeout(call), limit);
            }
        }
    }

    pub(super) fn coordination_is_waiting(&self) -> bool {
        !self
            .calls
            .values()
            .any(|it| *it == CallPurpose::Coordination)
    }

    pub(super) fn watch_coordination(&mut self) {
        let options = WatchOptions {
            fields: Some(format!("metadata.name={NAME}")),
            bookmarks: true,
            ..WatchOptions::default()
        };
        let kind = self.options.coordination_kind;
        self.watch(WatchPurpose::Coordination, kind, options);
    }

    pub(super) fn coordination_event(&mut self, event: &ServerEvent) {
        self.coordination.observe(event, self.clock);
        self.go_on_with_coordination();
    }

    pub(super) fn go_on_with_coordination(&mut self) {
        let has_left = matches!(self.stop, Some(StopPhase::Leaving | StopPhase::Exited))
            || (planted!(LeaseReleasedAtStop) && self.stop.is_some());
        if self.coordination_is_waiting() && !has_left {
            let step = self.coordination.go_on(self.clock);
            self.coordinate(step);
        }
    }

    /// The time of a request is over, unless it was answered.
    pub(super) fn time_out(&mut self, call: u64) {
        if self.calls.contains_key(&call) {
            self.answered(call, CallOutcome::TimedOut);
        }
    }
}
