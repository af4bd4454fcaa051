//! Plays many histories, and makes a failing one short.

pub mod parallel;

use crate::choices::{Choices, Decisions};
use crate::world::{History, HistoryFigures, Scenario, Violation, World};

/// The histories that a shrinking may play.
const MOST_REPLAYS: u32 = 1_000;

/// The result of many histories.
#[derive(Debug, Default)]
pub struct Exploration {
    /// The number of histories.
    pub histories: u64,
    /// The requests that the API server executed for operators.
    pub requests: u64,
    /// The steps of all histories.
    pub steps: u64,
    /// The first failure.
    pub failure: Option<FailingSeed>,
}

/// A history in which a claim does not hold.
#[derive(Debug)]
pub struct FailingSeed {
    /// The seed.
    pub seed: u64,
    /// The violation that it leads to.
    pub violation: Violation,
    /// All decisions of the history.
    pub decisions: Decisions,
}

/// Plays the histories of seeds until one fails.
pub fn explore<S: Scenario>(
    scenario: impl Fn() -> S,
    seeds: impl IntoIterator<Item = u64>,
) -> Exploration {
    let mut exploration = Exploration::default();
    for seed in seeds {
        let mut choices = Choices::seeded(seed);
        let (figures, result) = play(&scenario, &mut choices, &mut History::unrecorded());
        exploration.histories += 1;
        exploration.requests += figures.requests;
        exploration.steps += figures.steps;
        if let Err(violation) = result {
            exploration.failure = Some(FailingSeed {
                seed,
                violation,
                decisions: choices.drawn(),
            });
            break;
        }
    }
    exploration
}

/// Plays one history.
pub fn play<S: Scenario>(
    scenario: impl Fn() -> S,
    choices: &mut Choices,
    history: &mut History,
) -> (HistoryFigures, Result<(), Violation>) {
    World::play(&mut scenario(), choices, history)
}

/// Simpler decisions that violate the same claim.
///
/// Whole streams are cleared, then pieces of them are set to zero, then single decisions are made
/// smaller: zero is the plain decision, and what a stream does not have is zero.
pub fn shrink<S: Scenario>(scenario: impl Fn() -> S, failure: &FailingSeed) -> Decisions {
    let mut shrinking = Shrinking {
        fails: |decisions: &Decisions| {
            let mut choices = Choices::recorded(decisions.clone());
            let (_, result) = play(&scenario, &mut choices, &mut History::unrecorded());
            result.is_err_and(|it| it.claim == failure.violation.claim)
        },
        best: failure.decisions.clone(),
        replays: 0,
    };
    shrinking.run();
    shrinking.best
}

struct Shrinking<F> {
    fails: F,
    best: Decisions,
    replays: u32,
}

// === impl Shrinking ===

impl<F: Fn(&Decisions) -> bool> Shrinking<F> {
    fn run(&mut self) {
        loop {
            let before = self.best.clone();
            self.clear_streams();
            self.zero_pieces();
            self.lower_decisions();
            if self.best == before || self.replays >= MOST_REPLAYS {
                return;
            }
        }
    }

    /// Takes a simpler list of a stream, if the history still fails.
    fn try_stream(&mut self, stream: usize, mut simpler: Vec<u32>) -> bool {
        while simpler.last() == Some(&0) {
            simpler.pop();
        }
        if simpler == self.best.0[stream] || self.replays >= MOST_REPLAYS {
            return false;
        }
        let mut candidate = self.best.clone();
        candidate.0[stream] = simpler;
        self.replays += 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    fn clear_streams(&mut self) {
        for stream in 0..self.best.0.len() {
            self.try_stream(stream, Vec::new());
        }
    }

    fn zero_pieces(&mut self) {
        for stream in 0..self.best.0.len() {
            let mut size = self.best.0[stream].len() / 2;
            while size > 0 {
                let mut start = 0;
                while start < self.best.0[stream].len() {
                    let mut simpler = self.best.0[stream].clone();
                    let end = (start + size).min(simpler.len());
                    simpler[start..end].fill(0);
                    self.try_stream(stream, simpler);
                    start += size;
                }
                size /= 2;
            }
        }
    }

    fn lower_decisions(&mut self) {
        for stream in 0..self.best.0.len() {
            for index in 0..self.best.0[stream].len() {
                while let Some(&value) = self.best.0[stream].get(index).filter(|it| **it > 0) {
                    let lowered = [0, value / 2, value - 1].into_iter().any(|lower| {
                        let mut simpler = self.best.0[stream].clone();
                        simpler[index] = lower;
                        self.try_stream(stream, simpler)
                    });
                    if !lowered {
                        break;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_shrink_to_those_that_make_a_history_fail() {
        let fails = |Decisions(streams): &Decisions| {
            streams.iter().flatten().filter(|it| **it >= 7).count() >= 2
        };
        let best = Decisions(vec![vec![1, 9, 0, 4], vec![8, 3], vec![12, 0, 5, 700]]);
        let mut shrinking = Shrinking {
            fails,
            best,
            replays: 0,
        };
        shrinking.run();
        assert_eq!(shrinking.best.count(), 2);
        assert_eq!(shrinking.best.0.concat().iter().max(), Some(&7));
    }
}
