//! The documented times of timers, as examples and as a model.

use proptest::prelude::*;

use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn every(interval: Duration) -> TimerTiming {
    TimerTiming::Every {
        interval,
        sharp: false,
        idle: None,
    }
}

fn sharp(interval: Duration) -> TimerTiming {
    TimerTiming::Every {
        interval,
        sharp: true,
        idle: None,
    }
}

/// Calls the timer when it is due, for so long, and returns that time.
fn tick(ticker: &mut Ticker, timing: &TimerTiming, lasting: Duration) -> Moment {
    let due = ticker.due(timing).expect("it is due at some time");
    ticker.begin(timing, due);
    ticker.finish(timing, due + lasting);
    due
}

#[test]
fn the_first_call_is_immediate_and_the_interval_follows_its_end() {
    let timing = every(s(10));
    let mut ticker = Ticker::start(s(5), Duration::ZERO);
    assert_eq!(tick(&mut ticker, &timing, s(3)), s(5));
    assert_eq!(tick(&mut ticker, &timing, s(3)), s(18));
    assert_eq!(tick(&mut ticker, &timing, s(30)), s(31));
    assert_eq!(ticker.due(&timing), Some(s(71)));
}

#[test]
fn a_sharp_timer_does_not_count_the_duration_of_calls() {
    let timing = sharp(s(1));
    let mut ticker = Ticker::start(s(5), Duration::ZERO);
    assert_eq!(tick(&mut ticker, &timing, ms(300)), s(5));
    assert_eq!(tick(&mut ticker, &timing, ms(300)), s(6));
    assert_eq!(tick(&mut ticker, &timing, ms(2500)), s(7));
    assert_eq!(ticker.due(&timing), Some(s(10)));
}

#[test]
fn a_sharp_timer_that_is_always_late_does_not_drift() {
    let timing = sharp(s(60));
    let mut ticker = Ticker::start(Duration::ZERO, Duration::ZERO);
    for minute in 0..10_000_u64 {
        let due = ticker.due(&timing).expect("it has an interval");
        assert_eq!(due, s(60 * minute));
        let late = due + ms(7);
        ticker.begin(&timing, late);
        ticker.finish(&timing, late + ms(5));
    }
}

#[test]
fn a_retry_keeps_the_grid_of_a_sharp_timer() {
    let timing = sharp(s(10));
    let mut ticker = Ticker::start(Duration::ZERO, Duration::ZERO);
    ticker.begin(&timing, Duration::ZERO);
    ticker.retry(s(3), s(1));
    assert_eq!(ticker.due(&timing), Some(s(4)));
    ticker.begin(&timing, s(4));
    ticker.finish(&timing, s(5));
    assert_eq!(ticker.due(&timing), Some(s(10)));
}

#[test]
fn an_error_delay_replaces_the_interval() {
    let timing = every(s(10));
    let mut ticker = Ticker::start(Duration::ZERO, Duration::ZERO);
    for attempt in 0..3 {
        let due = ticker.due(&timing).expect("it is due");
        assert_eq!(due, s(5 * attempt));
        ticker.begin(&timing, due);
        ticker.retry(s(5), due);
    }
    assert_eq!(tick(&mut ticker, &timing, Duration::ZERO), s(15));
    assert_eq!(ticker.due(&timing), Some(s(25)));
}

#[test]
fn an_idle_timer_is_due_once_per_idle_time() {
    let timing = TimerTiming::Idle(s(10));
    let mut ticker = Ticker::start(s(1), Duration::ZERO);
    assert_eq!(ticker.due(&timing), Some(s(11)));
    ticker.change(s(8));
    assert_eq!(tick(&mut ticker, &timing, s(1)), s(18));
    assert_eq!(ticker.due(&timing), None);
    ticker.change(s(100));
    assert_eq!(ticker.due(&timing), Some(s(110)));
}

#[test]
fn a_change_during_a_call_counts() {
    let timing = TimerTiming::Idle(s(10));
    let mut ticker = Ticker::start(Duration::ZERO, Duration::ZERO);
    ticker.begin(&timing, s(10));
    ticker.change(s(12));
    ticker.finish(&timing, s(15));
    assert_eq!(ticker.due(&timing), Some(s(22)));
}

#[test]
fn an_idle_timer_with_an_interval_repeats_while_the_object_is_unchanged() {
    let timing = TimerTiming::Every {
        interval: s(1),
        sharp: false,
        idle: Some(s(10)),
    };
    let mut ticker = Ticker::start(Duration::ZERO, Duration::ZERO);
    assert_eq!(tick(&mut ticker, &timing, Duration::ZERO), s(10));
    assert_eq!(tick(&mut ticker, &timing, Duration::ZERO), s(11));
    ticker.change(s(11));
    assert_eq!(tick(&mut ticker, &timing, Duration::ZERO), s(21));
}

#[test]
fn the_initial_delay_and_the_idle_time_overlap() {
    let timing = TimerTiming::Every {
        interval: s(10),
        sharp: false,
        idle: Some(s(600)),
    };
    let mut ticker = Ticker::start(Duration::ZERO, s(60));
    assert_eq!(ticker.due(&timing), Some(s(600)));
    ticker.change(s(30));
    assert_eq!(tick(&mut ticker, &timing, Duration::ZERO), s(630));
    let mut warm_up = Ticker::start(Duration::ZERO, s(60));
    assert_eq!(tick(&mut warm_up, &every(s(10)), Duration::ZERO), s(60));
}

#[test]
fn few_timers_start_at_once_and_many_are_spread() {
    let timing = every(s(60));
    assert_eq!(timing.spread(0, 1.0, s(60)), Duration::ZERO);
    assert_eq!(timing.spread(3, 1.0, s(60)), ms(30));
    assert_eq!(timing.spread(50_000, 0.5, s(60)), s(30));
    assert_eq!(every(s(2)).spread(50_000, 1.0, s(60)), s(2));
    assert_eq!(every(s(3600)).spread(50_000, 1.0, s(60)), s(60));
    assert_eq!(timing.spread(50_000, 1.0, Duration::ZERO), Duration::ZERO);
}

#[test]
fn timers_are_called_together_and_little_late() {
    let minute = every(s(60));
    assert_eq!(minute.wake_time(s(120)), s(120));
    assert_eq!(minute.wake_time(ms(120_001)), ms(120_100));
    assert_eq!(minute.wake_time(ms(120_099)), ms(120_100));
    let second = every(s(1));
    assert_eq!(second.wake_time(ms(1_000)), ms(1_002), "a grid of 3 ms");
    let quick = every(ms(10));
    assert_eq!(quick.wake_time(ms(1_001)), ms(1_001));
    assert_eq!(quick.wake_time(Duration::from_micros(1_500)), ms(2));
}

/// The next step of a timer in the model.
#[derive(Clone, Debug)]
enum TimerStep {
    /// A call when due, late by so much and for so long.
    Tick { late: u64, lasting: u64 },
    /// A call that fails.
    Fail { lasting: u64, delay: u64 },
    /// The object changes after so long.
    Change { after: u64 },
    /// The object changes during a call.
    ChangeWithin { lasting: u64 },
}

fn step() -> impl Strategy<Value = TimerStep> {
    prop_oneof![
        (0..50_u64, 0..5000_u64).prop_map(|(late, lasting)| TimerStep::Tick { late, lasting }),
        (0..500_u64, 0..9000_u64).prop_map(|(lasting, delay)| TimerStep::Fail { lasting, delay }),
        (0..9000_u64).prop_map(|after| TimerStep::Change { after }),
        (2..5000_u64).prop_map(|lasting| TimerStep::ChangeWithin { lasting }),
    ]
}

fn timing() -> impl Strategy<Value = TimerTiming> {
    let idle = || 1..20_000_u64;
    prop_oneof![
        (
            1..20_000_u64,
            any::<bool>(),
            proptest::option::of(idle().prop_map(ms))
        )
            .prop_map(|(interval, sharp, idle)| TimerTiming::Every {
                interval: ms(interval),
                sharp,
                idle
            }),
        idle().prop_map(|idle| TimerTiming::Idle(ms(idle))),
    ]
}

/// The documented rules, in milliseconds.
struct TimerModel {
    timing: TimerTiming,
    last_change: u64,
    /// The earliest time by initial delay, interval or error; none if a change must come first.
    earliest: Option<u64>,
    grid: u64,
    retrying: bool,
}

impl TimerModel {
    fn millis(duration: Duration) -> u64 {
        u64::try_from(duration.as_millis()).expect("small")
    }

    fn due(&self) -> Option<u64> {
        let idle = self.timing.idle().map(Self::millis);
        let quiet = idle.map_or(0, |idle| self.last_change + idle);
        self.earliest.map(|earliest| earliest.max(quiet))
    }

    fn change(&mut self, now: u64) {
        self.last_change = now;
        if self.earliest.is_none() {
            self.earliest = Some(now);
        }
    }

    fn begin(&mut self) {
        if !self.retrying {
            self.grid = self.due().expect("it is due");
        }
    }

    fn finish(&mut self, began: u64, now: u64) {
        self.retrying = false;
        self.earliest = match self.timing {
            TimerTiming::Every {
                interval,
                sharp: true,
                ..
            } => {
                let interval = Self::millis(interval);
                let mut next = self.grid;
                while next <= now {
                    next += interval;
                }
                Some(next)
            }
            TimerTiming::Every { interval, .. } => Some(now + Self::millis(interval)),
            TimerTiming::Idle(_) => (self.last_change > began).then_some(now),
        };
    }

    fn fail(&mut self, now: u64, delay: u64) {
        self.retrying = true;
        self.earliest = Some(now + delay);
    }
}

proptest! {
    #[test]
    fn timers_are_due_at_the_documented_times(
        timing in timing(),
        delay in 0..5000_u64,
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut ticker = Ticker::start(ms(1000), ms(delay));
        let mut model = TimerModel {
            timing,
            last_change: 1000,
            earliest: Some(1000 + delay),
            grid: 0,
            retrying: false,
        };
        let mut now = 1000;
        for step in steps {
            prop_assert_eq!(ticker.due(&timing), model.due().map(ms));
            if let Some(due) = ticker.due(&timing) {
                let late = timing.wake_time(due) - due;
                prop_assert!(late <= ms(100) && late <= timing.period().max(ms(1)));
            }
            let due = model.due().map(|due| due.max(now));
            match (step, due) {
                (TimerStep::Tick { late, lasting }, Some(due)) => {
                    let began = due + late;
                    now = began + lasting;
                    ticker.begin(&timing, ms(began));
                    ticker.finish(&timing, ms(now));
                    model.begin();
                    model.finish(began, now);
                }
                (TimerStep::Fail { lasting, delay }, Some(due)) => {
                    now = due + lasting;
                    ticker.begin(&timing, ms(due));
                    ticker.retry(ms(delay), ms(now));
                    model.begin();
                    model.fail(now, delay);
                }
                (TimerStep::ChangeWithin { lasting }, Some(due)) => {
                    now = due + lasting;
                    ticker.begin(&timing, ms(due));
                    ticker.change(ms(due + 1));
                    ticker.finish(&timing, ms(now));
                    model.begin();
                    model.change(due + 1);
                    model.finish(due, now);
                }
                (TimerStep::Change { after }, _) => {
                    now += after;
                    ticker.change(ms(now));
                    model.change(now);
                }
                (_, None) => {
                    now += 1;
                    ticker.change(ms(now));
                    model.change(now);
                }
            }
        }
    }
}
