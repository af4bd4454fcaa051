//! Every decision of a history comes from here, so that a seed, or the decisions themselves,
//! repeat it.
//!
//! Zero is always the plain decision: no fault, no delay, no disturbance. So fewer and smaller
//! numbers are a simpler history, which is how failures are shrunk. The decisions about one thing,
//! such as one disturbance, are a stream of their own: without it the others stay as they are.

use fastrand::Rng;

/// Mixes the number of a stream into the seed.
const STREAM_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The decisions of a history, by stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions(pub(crate) Vec<Vec<u32>>);

/// The source of decisions of one history.
#[derive(Debug)]
pub struct Choices {
    source: ChoiceSource,
    streams: Vec<ChoiceStream>,
    current: usize,
}

#[derive(Debug)]
enum ChoiceSource {
    Seed(u64),
    /// Decisions that were drawn before; all further ones are zero.
    Recorded(Decisions),
}

#[derive(Debug)]
struct ChoiceStream {
    rng: Option<Rng>,
    drawn: Vec<u32>,
}

// === impl Decisions ===

impl Decisions {
    /// The number of decisions that are not plain.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().flatten().filter(|it| **it > 0).count()
    }
}

// === impl Choices ===

impl Choices {
    /// Decisions of a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::new(ChoiceSource::Seed(seed))
    }

    /// Decisions that were drawn before.
    #[must_use]
    pub fn recorded(decisions: Decisions) -> Self {
        Self::new(ChoiceSource::Recorded(decisions))
    }

    fn new(source: ChoiceSource) -> Self {
        Self {
            source,
            streams: Vec::new(),
            current: 0,
        }
    }

    /// The decisions so far.
    #[must_use]
    pub fn drawn(&self) -> Decisions {
        Decisions(self.streams.iter().map(|it| it.drawn.clone()).collect())
    }

    /// The stream of the next decisions.
    pub fn set_stream(&mut self, stream: usize) {
        self.current = stream;
    }

    /// One of `count` alternatives, which are numbered from zero.
    pub fn one_of(&mut self, count: u32) -> u32 {
        if count < 2 {
            return 0;
        }
        while self.streams.len() <= self.current {
            self.add_stream();
        }
        let stream = &mut self.streams[self.current];
        let drawn = match (&mut stream.rng, &self.source) {
            (Some(rng), _) => rng.u32(..count),
            (None, ChoiceSource::Recorded(Decisions(recorded))) => {
                let recorded = recorded.get(self.current);
                let decision = recorded.and_then(|it| it.get(stream.drawn.len()));
                decision.copied().unwrap_or_default().min(count - 1)
            }
            (None, ChoiceSource::Seed(_)) => 0,
        };
        stream.drawn.push(drawn);
        drawn
    }

    fn add_stream(&mut self) {
        let number = self.streams.len() as u64;
        let rng = match &self.source {
            ChoiceSource::Seed(seed) => {
                let seed = seed.wrapping_add(number.wrapping_mul(STREAM_STEP));
                // Neighbours among seeds have nothing else in common.
                Some(Rng::with_seed(Rng::with_seed(seed).u64(..)))
            }
            ChoiceSource::Recorded(_) => None,
        };
        self.streams.push(ChoiceStream {
            rng,
            drawn: Vec::new(),
        });
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
        let draw = |choices: &mut Choices| -> Vec<u32> {
            let draw = |count: u32| {
                choices.set_stream(count as usize % 3);
                choices.one_of(count)
            };
            (2..50).map(draw).collect()
        };
        let mut seeded = Choices::seeded(7);
        let first = draw(&mut seeded);
        let mut recorded = Choices::recorded(seeded.drawn());
        assert_eq!(first, draw(&mut recorded));
        assert_eq!(recorded.one_of(9), 0, "what was not recorded is plain");
        assert!(!recorded.happens(999), "zero is no fault");
        assert_ne!(first, draw(&mut Choices::seeded(8)));
    }

    #[test]
    fn a_stream_does_not_depend_on_the_others() {
        let last = |others: u32| {
            let mut choices = Choices::seeded(1);
            for _ in 0..others {
                choices.one_of(100);
            }
            choices.set_stream(1);
            choices.one_of(1000)
        };
        assert_eq!(last(0), last(5));
    }
}
