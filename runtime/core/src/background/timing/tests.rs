//! The documented arithmetic of timers, as examples and as a model.

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

/// Ticks when due, for so long, and tells when that was.
fn tick(ticker: &mut Ticker, timing: &TimerTiming, lasting: Duration) -> Moment {
    let due = ticker.due(timing).expect("it is due at some time");
    ticker.begin(timing, due);
    ticker.finish(timing, due + lasting);
    due
}

#[test]
fn the_first_tick_is_immediate_and_the_interval_follows_the_end() {
    let timing = every(s(10));
    let mut ticker = Ticker::start(s(5), Duration::ZERO);
    assert_eq!(tick(&mut ticker, &timing, s(3)), s(5));
    assert_eq!(tick(&mut ticker, &timing, s(3)), s(18));
    assert_eq!(tick(&mut ticker, &timing, s(30)), s(31));
    assert_eq!(ticker.due(&timing), Some(s(71)));
}

#[test]
fn a_sharp_timer_leaves_its_own_time_out() {
    let timing = sharp(s(1));
    let mut ticker = Ticker::start(s(5), Duration::ZERO);
    assert_eq!(tick(&mut ticker, &timing, ms(300)), s(5));
    assert_eq!(tick(&mut ticker, &timing, ms(300)), s(6));
    assert_eq!(tick(&mut ticker, &timing, ms(2500)), s(7));
    assert_eq!(ticker.due(&timing), Some(s(10)));
}

#[test]
fn a_sharp_timer_does_not_drift_though_it_is_always_called_late() {
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
fn idling_alone_ticks_once_per_quiet_time() {
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
fn a_change_during_a_tick_is_a_change() {
    let timing = TimerTiming::Idle(s(10));
    let mut ticker = Ticker::start(Duration::ZERO, Duration::ZERO);
    ticker.begin(&timing, s(10));
    ticker.change(s(12));
    ticker.finish(&timing, s(15));
    assert_eq!(ticker.due(&timing), Some(s(22)));
}

#[test]
fn idling_with_an_interval_ticks_on_while_nothing_changes() {
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
fn a_first_delay_and_idling_run_at_the_same_time() {
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
fn few_timers_tick_at_once_and_many_are_spread() {
    let timing = every(s(60));
    assert_eq!(timing.spread(0, 1.0, s(60)), Duration::ZERO);
    assert_eq!(timing.spread(3, 1.0, s(60)), ms(30));
    assert_eq!(timing.spread(50_000, 0.5, s(60)), s(30));
    assert_eq!(every(s(2)).spread(50_000, 1.0, s(60)), s(2));
    assert_eq!(every(s(3600)).spread(50_000, 1.0, s(60)), s(60));
    assert_eq!(timing.spread(50_000, 1.0, Duration::ZERO), Duration::ZERO);
}

#[test]
fn timers_are_called_together_and_hardly_late() {
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

/// What happens to a timer next.
#[derive(Clone, Debug)]
enum Happening {
    /// It ticks when due, late by so much and for so long.
    Tick { late: u64, lasting: u64 },
    /// It is called when due and fails.
    Fail { lasting: u64, delay: u64 },
    /// The object changes after so long.
    Change { after: u64 },
    /// The object changes in the middle of a tick.
    ChangeWithin { lasting: u64 },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..50_u64, 0..5000_u64).prop_map(|(late, lasting)| Happening::Tick { late, lasting }),
        (0..500_u64, 0..9000_u64).prop_map(|(lasting, delay)| Happening::Fail { lasting, delay }),
        (0..9000_u64).prop_map(|after| Happening::Change { after }),
        (2..5000_u64).prop_map(|lasting| Happening::ChangeWithin { lasting }),
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

/// The documentation, in milliseconds: what is known of the past gives the next due time.
struct Model {
    timing: TimerTiming,
    last_change: u64,
    /// The earliest time by initial delay, interval or error; none if a change must come first.
    earliest: Option<u64>,
    grid: u64,
    retrying: bool,
}

impl Model {
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
    fn ticks_come_when_the_documentation_says(
        timing in timing(),
        delay in 0..5000_u64,
        happenings in proptest::collection::vec(happening(), 1..40),
    ) {
        let mut ticker = Ticker::start(ms(1000), ms(delay));
        let mut model = Model {
            timing,
            last_change: 1000,
            earliest: Some(1000 + delay),
            grid: 0,
            retrying: false,
        };
        let mut now = 1000;
        for happening in happenings {
            prop_assert_eq!(ticker.due(&timing), model.due().map(ms));
            if let Some(due) = ticker.due(&timing) {
                let late = timing.wake_time(due) - due;
                prop_assert!(late <= ms(100) && late <= timing.period().max(ms(1)));
            }
            let due = model.due().map(|due| due.max(now));
            match (happening, due) {
                (Happening::Tick { late, lasting }, Some(due)) => {
                    let began = due + late;
                    now = began + lasting;
                    ticker.begin(&timing, ms(began));
                    ticker.finish(&timing, ms(now));
                    model.begin();
                    model.finish(began, now);
                }
                (Happening::Fail { lasting, delay }, Some(due)) => {
                    now = due + lasting;
                    ticker.begin(&timing, ms(due));
                    ticker.retry(ms(delay), ms(now));
                    model.begin();
                    model.fail(now, delay);
                }
                (Happening::ChangeWithin { lasting }, Some(due)) => {
                    now = due + lasting;
                    ticker.begin(&timing, ms(due));
                    ticker.change(ms(due + 1));
                    ticker.finish(&timing, ms(now));
                    model.begin();
                    model.change(due + 1);
                    model.finish(due, now);
                }
                (Happening::Change { after }, _) => {
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
