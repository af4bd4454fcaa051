//! The schedule of a run: everything in it follows from the seed.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

use crate::plan::RunPlan;
use crate::trouble::Trouble;

/// The shortest and the longest pause between two troubles, in milliseconds.
pub(crate) const PAUSES: Range<u64> = 500..4000;

/// The same in a soak.
pub(crate) const SOAK_PAUSES: Range<u64> = 50_000..60_000;

/// The shortest and the longest time that a trouble lasts, in milliseconds.
const LENGTHS: Range<u64> = 500..4000;

/// The shortest and the longest time that a process works before it is killed, in milliseconds.
const WORK: Range<u64> = 0..1500;

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
    /// The schedule of a plan: kills at random moments of the processes' work, and one trouble of
    /// these sorts after another, each sort once before any comes again.
    pub(crate) fn new(plan: &RunPlan) -> Self {
        let (sorts, window) = (&plan.sorts, plan.window);
        let mut random = Rng::with_seed(plan.seed);
        let kills = (0..plan.kills)
            .map(|_| Duration::from_millis(random.u64(WORK)))
            .collect();
        let mut troubles = Vec::new();
        let mut waiting: Vec<Trouble> = Vec::new();
        let mut at = Duration::ZERO;
        while !sorts.is_empty() {
            at += Duration::from_millis(random.u64(plan.pauses.clone()));
            if at >= window {
                break;
            }
            if waiting.is_empty() {
                waiting.clone_from(sorts);
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
    use crate::tested_operator::TestedOperator;

    fn schedule(seed: u64, seconds: u64, kills: usize) -> Schedule {
        Schedule::new(&RunPlan {
            seed,
            window: Duration::from_secs(seconds),
            kills,
            objects: 0,
            second_objects: 0,
            gates: 0,
            operator: TestedOperator::KopfGen,
            crowd: 0,
            replicas: 1,
            sorts: Trouble::ALL.to_vec(),
            pauses: PAUSES,
            sabotage: None,
            verbose: false,
        })
    }

    #[test]
    fn a_seed_gives_one_schedule_and_another_seed_another() {
        assert_eq!(schedule(1, 120, 10), schedule(1, 120, 10));
        assert_ne!(schedule(1, 120, 10), schedule(2, 120, 10));
    }

    #[test]
    fn every_sort_comes_once_before_any_comes_again() {
        let schedule = schedule(3, 600, 0);
        let first = schedule.troubles.iter().take(Trouble::ALL.len());
        let mut first: Vec<Trouble> = first.map(|it| it.trouble).collect();
        first.sort();
        let mut all = Trouble::ALL;
        all.sort();
        assert_eq!(first, all);
    }
}
