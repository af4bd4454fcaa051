//! The schedule of a run: everything in it follows from the seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::trouble::Trouble;

/// The shortest and the longest pause between two troubles, in milliseconds.
const PAUSES: std::ops::Range<u64> = 500..4000;

/// The shortest and the longest time that a trouble lasts, in milliseconds.
const LENGTHS: std::ops::Range<u64> = 500..4000;

/// The shortest and the longest time that a process works before it is killed, in milliseconds.
const WORK: std::ops::Range<u64> = 0..1500;

/// The number of kills that are printed.
const SHOWN_KILLS: usize = 40;

/// What is made in a run, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// The time from the first call of a handler in each process to its death.
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
    /// The schedule of a seed: kills at random moments of the processes' work, and one trouble of
    /// these sorts after another, each sort once before any comes again.
    pub(crate) fn new(seed: u64, window: Duration, kills: usize, sorts: &[Trouble]) -> Self {
        let mut random = Rng::with_seed(seed);
        let kills = (0..kills)
            .map(|_| Duration::from_millis(random.u64(WORK)))
            .collect();
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
        Self { kills, troubles }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kill -9 after so many seconds of work:")?;
        for kill in self.kills.iter().take(SHOWN_KILLS) {
            write!(f, " {:.1}", kill.as_secs_f64())?;
        }
        if self.kills.len() > SHOWN_KILLS {
            write!(f, " … ({} in all)", self.kills.len())?;
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
