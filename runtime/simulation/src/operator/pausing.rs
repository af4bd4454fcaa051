//! Pauses and their ends, and the workers that may start.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::background::stopping::StopReason;
use kopf_core::queue::PauseReading;

use super::coordination::uptime;
use super::{
    CallPurpose, OperatorFact, SimulatedKey, SimulatedOperator, StreamRole, TimerPurpose,
    WatchPurpose,
};
use crate::world::ActorEffect;

/// The time after which work is long, if that is planted as a fault.
const LONG_WORK: Duration = Duration::from_secs(1);

impl SimulatedOperator {
    /// Follows the coordination into a pause and out of it.
    pub(super) fn follow_pauses(&mut self) {
        let reading = self.reading();
        if self.period != Some(reading) {
            let before = self.period.replace(reading);
            let ran = before.is_some_and(|it| it.running);
            let new_epoch = before.is_none_or(|it| it.epoch != reading.epoch);
            self.report(OperatorFact::Gate {
                running: reading.running,
            });
            if ran && (new_epoch || !reading.running) {
                self.background
                    .stop_all(StopReason::OperatorPausing, uptime(self.clock));
            }
            if reading.running && (new_epoch || !ran) && self.stop.is_none() {
                self.background.resume();
            }
            self.restart_stream(reading);
        }
        let rules = self.rules();
        self.queue.follow_pauses(&rules, &mut self.waiting, reading);
        if !self.may_write() {
            self.cut_off();
        }
    }

    pub(super) fn restart_stream(&mut self, reading: PauseReading) {
        let runs = reading.running && self.stop.is_none();
        let epoch = runs.then_some(reading.epoch);
        if self.stream.epoch == epoch {
            return;
        }
        for role in [StreamRole::Objects, StreamRole::Children] {
            if role == StreamRole::Objects || self.has_children() {
                self.restart_stream_of(role, epoch);
            }
        }
    }

    fn restart_stream_of(&mut self, role: StreamRole, epoch: Option<u64>) {
        self.stream_mut(role).restart(epoch);
        self.calls.retain(|_, it| *it != CallPurpose::List(role));
        let open = self
            .watches
            .iter()
            .find(|(_, it)| **it == WatchPurpose::Stream(role));
        if let Some((&watch, _)) = open {
            self.watches.remove(&watch);
            self.effects.push(ActorEffect::CloseWatch { watch });
        }
        let of_stream = [TimerPurpose::Stream(role), TimerPurpose::Sent(role)];
        self.timers.retain(|_, it| !of_stream.contains(it));
        let step = self.stream_mut(role).begin();
        self.go_on_with_stream(role, step);
    }

    /// The lease has ended: nothing that waits goes on.
    pub(super) fn cut_off(&mut self) {
        let waiting: Vec<Arc<SimulatedKey>> = self.workers.keys().cloned().collect();
        for key in waiting {
            self.cut_worker(&key);
        }
        for it in self.background.writing() {
            self.go_on_with_background_write(&it, None);
        }
    }

    /// The workers that count towards the limit.
    fn counted_workers(&self) -> usize {
        if planted!(LongWorkNotCounted) {
            let now = uptime(self.clock);
            let workers = self.workers.values();
            return workers.filter(|it| now < it.begun() + LONG_WORK).count();
        }
        self.workers.len()
    }

    /// Starts workers for the objects that are ready, and does what they lead to.
    pub(super) fn pump(&mut self) {
        loop {
            self.follow_pauses();
            self.perform_background();
            let epoch = Some(self.queue.epoch());
            let open = (!self.options.setup.has_index || self.stream.listed == epoch)
                && (!self.has_children() || self.child_stream.listed == epoch);
            let limit = self.options.behaviour.worker_limit;
            let is_full = limit.is_some_and(|limit| self.counted_workers() >= limit);
            let may_start = !self.queue.is_paused() && open && !is_full && self.stop.is_none();
            let next = match may_start {
                true => self.waiting.ready.pop_front(),
                false => None,
            };
            let Some(key) = next else {
                break;
            };
            let rules = self.rules();
            if let Some(started) = self.queue.start(&rules, &key) {
                self.begin_work(key, started);
            }
        }
        self.go_on_with_stop();
        for (timer, wait) in self.waiting.take_planned() {
            let at = self.clock.now.after(wait);
            self.effects.push(ActorEffect::SetTimer { timer, at });
        }
    }
}
