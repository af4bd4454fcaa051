//! Plays many histories, and makes a failing one short.

use crate::choices::Choices;
use crate::world::{History, HistoryFigures, Scenario, Violation, World};

/// The histories that a shrinking may play.
const MOST_REPLAYS: u32 = 3_000;

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
    pub decisions: Vec<u32>,
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
                decisions: choices.drawn().to_vec(),
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
/// Pieces of the list are removed, then set to zero, then single decisions are made smaller: zero
/// is the plain decision, and what the list does not have is zero.
pub fn shrink<S: Scenario>(scenario: impl Fn() -> S, failure: &FailingSeed) -> Vec<u32> {
    let mut shrinking = Shrinking {
        fails: |decisions: &[u32]| {
            let mut choices = Choices::recorded(decisions.to_vec());
            let (_, result) = play(&scenario, &mut choices, &mut History::unrecorded());
            result.is_err_and(|it| it.claim == failure.violation.claim)
        },
        best: failure.decisions.clone(),
        replays: 0,
    };
    loop {
        let before = shrinking.best.clone();
        shrinking.remove_pieces();
        shrinking.zero_pieces();
        shrinking.lower_decisions();
        if shrinking.best == before || shrinking.replays >= MOST_REPLAYS {
            return shrinking.best;
        }
    }
}

struct Shrinking<F> {
    fails: F,
    best: Vec<u32>,
    replays: u32,
}

// === impl Shrinking ===

impl<F: Fn(&[u32]) -> bool> Shrinking<F> {
    /// Takes a simpler list, if it still fails.
    fn try_list(&mut self, mut candidate: Vec<u32>) -> bool {
        while candidate.last() == Some(&0) {
            candidate.pop();
        }
        if candidate == self.best || self.replays >= MOST_REPLAYS {
            return false;
        }
        self.replays += 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    fn remove_pieces(&mut self) {
        let mut size = self.best.len() / 2;
        while size > 0 {
            let mut start = self.best.len().saturating_sub(size);
            loop {
                let end = (start + size).min(self.best.len());
                let mut candidate = self.best.clone();
                candidate.drain(start.min(end)..end);
                self.try_list(candidate);
                if start == 0 {
                    break;
                }
                start = start.saturating_sub(size);
            }
            size /= 2;
        }
    }

    fn zero_pieces(&mut self) {
        let mut size = self.best.len() / 2;
        while size > 0 {
            let mut start = 0;
            while start < self.best.len() {
                let mut candidate = self.best.clone();
                let end = (start + size).min(candidate.len());
                candidate[start..end].fill(0);
                self.try_list(candidate);
                start += size;
            }
            size /= 2;
        }
    }

    fn lower_decisions(&mut self) {
        for index in 0..self.best.len() {
            while let Some(&value) = self.best.get(index).filter(|it| **it > 0) {
                let lower = [value / 2, value - 1];
                let lowered = lower.into_iter().any(|lower| {
                    let mut candidate = self.best.clone();
                    candidate[index] = lower;
                    self.try_list(candidate)
                });
                if !lowered {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shrinks_to_what_makes_it_fail() {
        let fails = |decisions: &[u32]| decisions.iter().filter(|it| **it >= 7).count() >= 2;
        let best = vec![1, 9, 0, 4, 8, 3, 12, 0, 5, 700];
        let mut shrinking = Shrinking {
            fails,
            best,
            replays: 0,
        };
        shrinking.remove_pieces();
        shrinking.zero_pieces();
        shrinking.lower_decisions();
        assert_eq!(shrinking.best, [7, 7]);
    }
}
