//! Every decision of a history comes from here, so that a seed, or the decisions themselves,
//! repeat it.
//!
//! Zero is always the plain decision: no fault, no delay, the oldest message first. So a shorter
//! list with smaller numbers is a simpler history, which is how failures are shrunk.

use fastrand::Rng;

/// The source of decisions of one history.
#[derive(Debug)]
pub struct Choices {
    source: ChoiceSource,
    drawn: Vec<u32>,
}

#[derive(Debug)]
enum ChoiceSource {
    Seeded(Rng),
    /// Decisions that were drawn before; all further ones are zero.
    Recorded(Vec<u32>),
}

// === impl Choices ===

impl Choices {
    /// Decisions of a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            source: ChoiceSource::Seeded(Rng::with_seed(seed)),
            drawn: Vec::new(),
        }
    }

    /// Decisions that were drawn before.
    #[must_use]
    pub fn recorded(decisions: Vec<u32>) -> Self {
        Self {
            source: ChoiceSource::Recorded(decisions),
            drawn: Vec::new(),
        }
    }

    /// The decisions so far.
    #[must_use]
    pub fn drawn(&self) -> &[u32] {
        &self.drawn
    }

    /// One of `count` alternatives, which are numbered from zero.
    pub fn one_of(&mut self, count: u32) -> u32 {
        if count < 2 {
            return 0;
        }
        let drawn = match &mut self.source {
            ChoiceSource::Seeded(rng) => rng.u32(..count),
            ChoiceSource::Recorded(decisions) => {
                let recorded = decisions.get(self.drawn.len()).copied();
                recorded.unwrap_or_default().min(count - 1)
            }
        };
        self.drawn.push(drawn);
        drawn
    }

    /// One of the items, which are not empty.
    pub fn item<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        &items[self.one_of(count) as usize]
    }

    /// Whether something with this chance, in per mille, happens.
    pub fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.one_of(1000) >= 1000_u32.saturating_sub(per_mille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_decisions_repeat_a_seed() {
        let mut seeded = Choices::seeded(7);
        let first: Vec<u32> = (2..50).map(|count| seeded.one_of(count)).collect();
        let mut recorded = Choices::recorded(seeded.drawn().to_vec());
        let second: Vec<u32> = (2..50).map(|count| recorded.one_of(count)).collect();
        assert_eq!(first, second);
        assert_eq!(recorded.one_of(9), 0, "what was not recorded is plain");
        assert!(!recorded.happens(999), "zero is no fault");
    }
}
