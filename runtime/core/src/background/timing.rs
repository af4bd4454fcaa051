//! Decides when a timer is due: interval, sharp interval, idle time, initial delay, retries.

use std::time::Duration;

use super::Moment;

/// The declared timing of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerTiming {
    /// At intervals.
    Every {
        /// The pause after a call; for a sharp timer, the time between calls.
        interval: Duration,
        /// Whether calls stay on a fixed grid, regardless of their duration.
        sharp: bool,
        /// The time for which the object must have been unchanged.
        idle: Option<Duration>,
    },
    /// Once whenever the object has been unchanged for so long.
    Idle(Duration),
}

/// The schedule of one timer of one object.
///
/// The timer is due at [`due`](Self::due). The caller reports the beginning of a call by
/// [`begin`](Self::begin), its end by [`finish`](Self::finish) or [`retry`](Self::retry), and
/// changes of the object's essence by [`change`](Self::change) at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticker {
    next: NextTick,
    /// The time of the last change of the essence; the first event is a change, too.
    changed: CompactMoment,
    /// The origin of a sharp timer's grid: the due time of the last call that was no retry.
    planned: CompactMoment,
    /// The beginning of the present call.
    began: CompactMoment,
}

/// A moment in half the memory, since there may be very many timers: nanoseconds, for 584 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CompactMoment(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextTick {
    /// Not before this moment, nor before the idle time is over.
    Tick(CompactMoment),
    /// A retry of a failed call.
    Retry(CompactMoment),
    /// No call until the object changes.
    Change,
}

/// Timers that start together are spread over a time that grows by this for each timer.
const SPREAD_STEP: Duration = Duration::from_millis(10);

/// One wake-up for many timers is cheaper than one for each. A timer may be late by this part of
/// its period, but by no more than a tenth of a second.
const GRAINS: u32 = 256;
const COARSEST_GRAIN: Duration = Duration::from_millis(100);

// === impl TimerTiming ===

impl TimerTiming {
    /// The time for which the object must have been unchanged.
    #[must_use]
    pub fn idle(&self) -> Option<Duration> {
        match *self {
            Self::Every { idle, .. } => idle,
            Self::Idle(idle) => Some(idle),
        }
    }

    /// The additional delay of the first call for one of many objects that were listed at once.
    ///
    /// `started_before` timers started earlier, and `chance` is from 0 to 1. A few timers start at
    /// once; many are spread over their interval, but over no more than `longest`.
    #[must_use]
    pub fn spread(&self, started_before: u32, chance: f64, longest: Duration) -> Duration {
        let period = self.period();
        let window = SPREAD_STEP
            .saturating_mul(started_before)
            .min(period)
            .min(longest);
        window.mul_f64(chance.clamp(0.0, 1.0))
    }

    /// The time at which to call a timer that is due at `due`: a little later, with other timers.
    ///
    /// The schedule does not depend on it, so that the delays do not accumulate.
    #[must_use]
    pub fn wake_time(&self, due: Moment) -> Moment {
        let grain = (self.period() / GRAINS).min(COARSEST_GRAIN).as_millis();
        let late = due.as_nanos() % (grain.max(1) * 1_000_000);
        if late == 0 {
            return due;
        }
        let wait = grain.max(1) * 1_000_000 - late;
        due.saturating_add(Duration::from_nanos(u64::try_from(wait).unwrap_or(0)))
    }

    fn period(&self) -> Duration {
        match *self {
            Self::Every { interval, .. } => interval,
            Self::Idle(idle) => idle,
        }
    }
}

// === impl CompactMoment ===

impl CompactMoment {
    fn moment(self) -> Moment {
        Duration::from_nanos(self.0)
    }
}

impl From<Moment> for CompactMoment {
    fn from(moment: Moment) -> Self {
        Self(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX))
    }
}

// === impl Ticker ===

impl Ticker {
    /// A timer of an object whose first event comes now, first due after `delay`.
    #[must_use]
    pub fn start(now: Moment, delay: Duration) -> Self {
        let first = now.saturating_add(delay);
        Self {
            next: NextTick::Tick(first.into()),
            changed: now.into(),
            planned: first.into(),
            began: first.into(),
        }
    }

    /// The time at which the timer is due; none if a change of the object must come first.
    #[must_use]
    pub fn due(&self, timing: &TimerTiming) -> Option<Moment> {
        let quiet = timing
            .idle()
            .map(|idle| self.changed.moment().saturating_add(idle));
        match self.next {
            NextTick::Tick(at) | NextTick::Retry(at) => {
                let at = at.moment();
                Some(quiet.map_or(at, |quiet| at.max(quiet)))
            }
            NextTick::Change => None,
        }
    }

    /// The essence of the object has changed.
    pub fn change(&mut self, now: Moment) {
        self.changed = now.into();
        if self.next == NextTick::Change {
            self.next = NextTick::Tick(self.changed);
        }
    }

    /// A call begins.
    pub fn begin(&mut self, timing: &TimerTiming, now: Moment) {
        if let (NextTick::Tick(_), Some(due)) = (self.next, self.due(timing)) {
            self.planned = due.min(now).into();
        }
        self.began = now.into();
    }

    /// The call succeeded, or its failure is final.
    pub fn finish(&mut self, timing: &TimerTiming, now: Moment) {
        self.next = match *timing {
            TimerTiming::Every {
                interval,
                sharp: true,
                ..
            } => NextTick::Tick(next_on_grid(self.planned.moment(), interval, now).into()),
            TimerTiming::Every { interval, .. } => {
                NextTick::Tick(now.saturating_add(interval).into())
            }
            TimerTiming::Idle(_) if self.changed > self.began => NextTick::Tick(now.into()),
            TimerTiming::Idle(_) => NextTick::Change,
        };
    }

    /// The call failed, and a retry follows.
    pub fn retry(&mut self, delay: Duration, now: Moment) {
        self.next = NextTick::Retry(now.saturating_add(delay).into());
    }
}

/// The first point after `now` that is whole intervals away from `origin`.
fn next_on_grid(origin: Moment, interval: Duration, now: Moment) -> Moment {
    let interval = interval.max(Duration::from_millis(1));
    let passed = now.saturating_sub(origin);
    let into = passed.as_nanos() % interval.as_nanos();
    let into = Duration::from_nanos(u64::try_from(into).unwrap_or(0));
    now.saturating_add(interval - into)
}

#[cfg(test)]
mod tests;
