//! A timer of an object: little more than its schedule, as there may be very many.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kopf_core::background::timing::Ticker;
use kopf_core::background::{Moment, stopping::StopReason};
use kopf_core::cause::Reason;
use kopf_core::progress::record::Record;
use tokio_util::time::delay_queue;

use super::attempt::{Ended, Site};
use super::scheduler::Order;
use crate::registration::RegisteredTimer;

/// One timer of one object.
pub(super) struct Timer {
    pub(super) site: Site,
    /// Shared with all timers of the declaration: there may be very many.
    part: Arc<RegisteredTimer>,
    /// Never held across an await.
    state: Mutex<State>,
}

struct State {
    ticker: Ticker,
    /// The attempts of a tick that has failed so far.
    record: Option<Box<Record>>,
    place: Place,
}

/// Where a timer is.
enum Place {
    /// Nowhere: on its way to the clock, or waiting for a change of the object.
    Nowhere,
    /// On the clock.
    Clock(delay_queue::Key),
    /// In a call of its function.
    Call,
}

/// What the clock is to do with a timer.
pub(super) enum Due {
    /// Its time has come, and it counts as being called from now on.
    Now,
    /// Its time comes then.
    At(Moment),
    /// Nothing.
    Never,
}

/// Held by everything that belongs to a tick: when the last one is dropped, the next may come.
struct LastOfTick {
    timer: Arc<Timer>,
}

impl Timer {
    pub(super) fn new(site: Site, part: &Arc<RegisteredTimer>, ticker: Ticker) -> Self {
        Self {
            site,
            part: Arc::clone(part),
            state: Mutex::new(State {
                ticker,
                record: None,
                place: Place::Nowhere,
            }),
        }
    }

    /// The object has changed in what counts.
    pub(super) fn change(self: &Arc<Self>, now: Moment) {
        let mut state = self.lock();
        let waited = state.ticker.due(&self.part.timing).is_none();
        state.ticker.change(now);
        if waited {
            self.site.shared.order(Order::Arm(Arc::clone(self)));
        }
    }

    /// Asks it to stop; tells whether somebody has to see it off.
    pub(super) fn stop(self: &Arc<Self>, reason: StopReason) -> bool {
        let first = self.site.run.signal.raise(reason);
        let state = self.lock();
        match state.place {
            Place::Call => first,
            Place::Nowhere | Place::Clock(_) => {
                self.site.run.leave();
                self.site.shared.order(Order::Disarm(Arc::clone(self)));
                false
            }
        }
    }

    /// Tells the clock when the timer is due.
    pub(super) fn look(&self, now: Moment) -> Due {
        let mut state = self.lock();
        let stopped = !self.site.run.signal.reasons().is_empty();
        if stopped || matches!(state.place, Place::Call) {
            return Due::Never;
        }
        match state.ticker.due(&self.part.timing) {
            None => Due::Never,
            Some(due) if due <= now => {
                state.place = Place::Call;
                Due::Now
            }
            Some(due) => Due::At(self.part.timing.wake_time(due)),
        }
    }

    /// The timer is on the clock, and nowhere else.
    pub(super) fn put(&self, key: delay_queue::Key) -> Option<delay_queue::Key> {
        match std::mem::replace(&mut self.lock().place, Place::Clock(key)) {
            Place::Clock(former) => Some(former),
            Place::Nowhere | Place::Call => None,
        }
    }

    /// The timer is taken off the clock.
    pub(super) fn take(&self) -> Option<delay_queue::Key> {
        let mut state = self.lock();
        match state.place {
            Place::Clock(key) => {
                state.place = Place::Nowhere;
                Some(key)
            }
            Place::Nowhere | Place::Call => None,
        }
    }

    /// Calls the function once; the rest follows when everything of the call is over.
    pub(super) async fn tick(self: Arc<Self>) {
        let shared = &self.site.shared;
        let alive = Arc::new(LastOfTick {
            timer: Arc::clone(&self),
        });
        if !self.site.run.signal.reasons().is_empty() {
            return;
        }
        let mut record = self.begin(shared.now());
        let kept = Arc::clone(&alive);
        let ended = self.site.attempt(&mut record, kept).await;
        let now = shared.now();
        let mut state = self.lock();
        match ended {
            Ended::Well | Ended::Interrupted => state.ticker.finish(&self.part.timing, now),
            Ended::Badly => self.site.run.finish_for_good(),
            Ended::Again(delay) => {
                state.ticker.retry(delay, now);
                state.record = Some(record);
            }
        }
        drop(state);
        drop(alive);
    }

    fn begin(&self, now: Moment) -> Box<Record> {
        let backoff = self.site.shared.settings.execution.default_backoff;
        let mut state = self.lock();
        state.ticker.begin(&self.part.timing, now);
        // Stands if this tick is lost without an end.
        state.ticker.retry(backoff, now);
        let fresh = || Box::new(Record::begin(Reason::Noop, Timestamp::now()));
        state.record.take().unwrap_or_else(fresh)
    }

    /// Goes back to the clock, unless this was the end.
    fn settle(self: &Arc<Self>) {
        let run = &self.site.run;
        self.lock().place = Place::Nowhere;
        if run.is_finished_for_good() || !run.signal.reasons().is_empty() {
            run.leave();
            self.site.shared.nudge(&run.key);
        } else {
            self.site.shared.order(Order::Arm(Arc::clone(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LastOfTick {
    fn drop(&mut self) {
        self.timer.settle();
    }
}
