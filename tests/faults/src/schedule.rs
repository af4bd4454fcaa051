//! The schedule of a run: everything in it follows from the seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::trouble::Trouble;

/// The shortest and the longest pause between two troubles, in milliseconds.
const PAUSES: std::ops::Range<u64> = 500..4000;

/// The shortest and the longest time that a trouble lasts, in milliseconds.
const LENGTHS: std::ops::Range<u64> = 500..4000;

/// What is made in a run, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// The times at which the operator is killed.
    pub(crate) kills: Vec<Duration>,
    pub(crate) troubles: Vec<ScheduledTrouble>,
}

/// One trouble of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScheduledTrouble {
    /// From the start of the run.
    pub(crate) at: Duration,
    pub(crate) trouble: Trouble,
    pub(crate) lasts: Duration,
}

// === impl Schedule ===

impl Schedule {
    /// The schedule of a seed: kills at random times, and one trouble of these sorts after another,
    /// each sort once before any comes again.
    pub(crate) fn new(seed: u64, window: Duration, kills: usize, sorts: &[Trouble]) -> Self {
        let mut random = Rng::with_seed(seed);
        let last = u64::try_from(window.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut times: Vec<Duration> = (0..kills)
            .map(|_| Duration::from_millis(random.u64(0..last)))
            .collect();
        times.sort();
        let mut troubles = Vec::new();
        let mut waiting: Vec<Trouble> = Vec::new();
        let mut at = Duration::ZERO;
        while !sorts.is_empty() {
            at += Duration::from_millis(random.u64(PAUSES));
            if at >= window {
                break;
            }
            if waiting.is_empty() {
                waiting = sorts.to_vec();
                random.shuffle(&mut waiting);
            }
            let lasts = Duration::from_millis(random.u64(LENGTHS));
            if let Some(trouble) = waiting.pop() {
                troubles.push(ScheduledTrouble { at, trouble, lasts });
            }
            at += lasts;
        }
        Self {
            kills: times,
            troubles,
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kill -9 at")?;
        for kill in &self.kills {
            write!(f, " {:.1}", kill.as_secs_f64())?;
        }
        for trouble in &self.troubles {
            let (at, lasts) = (trouble.at.as_secs_f64(), trouble.lasts.as_secs_f64());
            write!(f, "\n{at:7.1} s {:<24} for {lasts:.1} s", trouble.trouble)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_schedule_and_another_seed_another() {
        let schedule = |seed| Schedule::new(seed, Duration::from_secs(120), 10, &Trouble::ALL);
        assert_eq!(schedule(1), schedule(1));
        assert_ne!(schedule(1), schedule(2));
    }

    #[test]
    fn every_sort_comes_once_before_any_comes_again() {
        let schedule = Schedule::new(3, Duration::from_secs(600), 0, &Trouble::ALL);
        let first = schedule.troubles.iter().take(Trouble::ALL.len());
        let mut first: Vec<Trouble> = first.map(|it| it.trouble).collect();
        first.sort();
        let mut all = Trouble::ALL;
        all.sort();
        assert_eq!(first, all);
    }
}
