//! A timer of an object: its schedule and the record of a failing tick.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kopf_core::background::timing::Ticker;
use kopf_core::background::{Moment, stopping::StopReason};
use kopf_core::cause::Reason;
use kopf_core::progress::record::Record;
use tokio_util::time::delay_queue;

use super::attempt::{AttemptEnd, InstanceRunner};
use crate::registration::RegisteredTimer;

/// A request to the scheduler.
pub(super) enum SchedulerCommand {
    /// Run this task.
    Spawn(BoxFuture<'static, ()>),
    /// Schedule a timer.
    Arm(Arc<Timer>),
    /// Take a timer out of the delay queue.
    Disarm(Arc<Timer>),
    /// Start one more caller of due timers.
    AddCaller,
}

/// One timer of one object; small, as there may be very many.
pub(super) struct Timer {
    pub(super) runner: InstanceRunner,
    /// Shared with all timers of the declaration.
    registered: Arc<RegisteredTimer>,
    /// Never held across an await.
    state: Mutex<State>,
}

struct State {
    ticker: Ticker,
    /// The attempts of a tick that has not succeeded yet.
    record: Option<Box<Record>>,
    phase: TimerPhase,
}

/// The phase of a timer between two ticks.
enum TimerPhase {
    /// On its way to the delay queue, or waiting for a change of the object.
    Unscheduled,
    /// In the delay queue.
    Scheduled(delay_queue::Key),
    /// Its function is called, or about to be.
    Calling,
}

/// The time of a timer's next tick.
pub(super) enum TimerDue {
    /// At once; the timer is in its calling phase from now on.
    Now,
    At(Moment),
    /// Not at all for now: it was stopped, is called already, or waits for a change.
    Never,
}

/// Held by all work of a tick: when the last holder drops it, the next tick is scheduled.
struct TickEndOnDrop {
    timer: Arc<Timer>,
}

impl Timer {
    pub(super) fn new(
        runner: InstanceRunner,
        registered: &Arc<RegisteredTimer>,
        ticker: Ticker,
    ) -> Self {
        Self {
            runner,
            registered: Arc::clone(registered),
            state: Mutex::new(State {
                ticker,
                record: None,
                phase: TimerPhase::Unscheduled,
            }),
        }
    }

    /// Restarts the idle time: the essence of the object has changed.
    pub(super) fn change(self: &Arc<Self>, now: Moment) {
        let mut state = self.lock();
        let waited = state.ticker.due(&self.registered.timing).is_none();
        state.ticker.change(now);
        if waited {
            self.runner
                .services
                .command(SchedulerCommand::Arm(Arc::clone(self)));
        }
    }

    /// Asks the timer to stop; returns whether a task has to drive it through the stop stages.
    pub(super) fn stop(self: &Arc<Self>, reason: StopReason) -> bool {
        let first = self.runner.instance.signal.raise(reason);
        let state = self.lock();
        match state.phase {
            TimerPhase::Calling => first,
            TimerPhase::Unscheduled | TimerPhase::Scheduled(_) => {
                self.runner.instance.mark_ended();
                self.runner
                    .services
                    .command(SchedulerCommand::Disarm(Arc::clone(self)));
                false
            }
        }
    }

    /// The time of the next tick.
    pub(super) fn due(&self, now: Moment) -> TimerDue {
        let mut state = self.lock();
        let stopped = !self.runner.instance.signal.reasons().is_empty();
        if stopped || matches!(state.phase, TimerPhase::Calling) {
            return TimerDue::Never;
        }
        match state.ticker.due(&self.registered.timing) {
            None => TimerDue::Never,
            Some(due) if due <= now => {
                state.phase = TimerPhase::Calling;
                TimerDue::Now
            }
            Some(due) => TimerDue::At(self.registered.timing.wake_time(due)),
        }
    }

    /// The time of the next tick, for a report; none while it is called or waits for a change.
    pub(super) fn next_tick(&self) -> Option<Moment> {
        let state = self.lock();
        match state.phase {
            TimerPhase::Calling => None,
            TimerPhase::Unscheduled | TimerPhase::Scheduled(_) => {
                state.ticker.due(&self.registered.timing)
            }
        }
    }

    /// Notes the timer's key in the delay queue; returns a former key, which is to be removed.
    pub(super) fn set_scheduled(&self, key: delay_queue::Key) -> Option<delay_queue::Key> {
        match std::mem::replace(&mut self.lock().phase, TimerPhase::Scheduled(key)) {
            TimerPhase::Scheduled(former) => Some(former),
            TimerPhase::Unscheduled | TimerPhase::Calling => None,
        }
    }

    /// Takes the timer's key in the delay queue, if it has one.
    pub(super) fn unschedule(&self) -> Option<delay_queue::Key> {
        let mut state = self.lock();
        match state.phase {
            TimerPhase::Scheduled(key) => {
                state.phase = TimerPhase::Unscheduled;
                Some(key)
            }
            TimerPhase::Unscheduled | TimerPhase::Calling => None,
        }
    }

    /// Calls the function once; the last work of the call schedules the next tick.
    pub(super) async fn tick(self: Arc<Self>) {
        let services = &self.runner.services;
        let alive = Arc::new(TickEndOnDrop {
            timer: Arc::clone(&self),
        });
        if !self.runner.instance.signal.reasons().is_empty() {
            return;
        }
        let mut record = self.begin(services.now());
        let kept = Arc::clone(&alive);
        let ended = self.runner.attempt(&mut record, kept).await;
        let now = services.now();
        let mut state = self.lock();
        match ended {
            AttemptEnd::Succeeded | AttemptEnd::Interrupted => {
                state.ticker.finish(&self.registered.timing, now)
            }
            AttemptEnd::Failed => self.runner.instance.mark_finished(),
            AttemptEnd::Retry(delay) => {
                state.ticker.retry(delay, now);
                state.record = Some(record);
            }
        }
        drop(state);
        drop(alive);
    }

    fn begin(&self, now: Moment) -> Box<Record> {
        let backoff = self.runner.services.settings.execution.default_backoff;
        let mut state = self.lock();
        state.ticker.begin(&self.registered.timing, now);
        // This delay stays if the tick is dropped before its end.
        state.ticker.retry(backoff, now);
        let fresh = || Box::new(Record::begin(Reason::Noop, Timestamp::now()));
        state.record.take().unwrap_or_else(fresh)
    }

    /// Schedules the next tick, unless the timer has finished or is to stop.
    fn reschedule_or_end(self: &Arc<Self>) {
        let instance = &self.runner.instance;
        self.lock().phase = TimerPhase::Unscheduled;
        if instance.is_finished() || !instance.signal.reasons().is_empty() {
            instance.mark_ended();
            self.runner.services.requeue(&instance.key);
        } else {
            self.runner
                .services
                .command(SchedulerCommand::Arm(Arc::clone(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TickEndOnDrop {
    fn drop(&mut self) {
        self.timer.reschedule_or_end();
    }
}
