//! Decides which of the due handlers run in a turn, and in which order.

use std::{collections::HashSet, fmt, sync::Arc};

use crate::handler::HandlerId;

/// A handler that could run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueHandler {
    /// Its id.
    pub id: HandlerId,
    /// Calls made so far, those of its sub-handlers included.
    pub attempts: u32,
}

/// A user's own choice among the handlers that are due, in declared order.
pub type Choice = Arc<dyn Fn(&[DueHandler]) -> Vec<HandlerId> + Send + Sync>;

/// The strategy. Each turn ends with one write, so one handler per turn loses no result.
#[derive(Clone, Default)]
pub enum Lifecycle {
    /// One handler per turn, those with the fewest attempts first.
    #[default]
    Asap,
    /// One handler per turn, strictly in order.
    OneByOne,
    /// All that are due, in order.
    AllAtOnce,
    /// One handler per turn, at random.
    Randomized,
    /// All that are due, in random order.
    Shuffled,
    /// Those that the function returns.
    Custom(Choice),
}

// === impl Lifecycle ===

impl Lifecycle {
    /// Picks handlers; `seed` is the only source of randomness.
    #[must_use]
    pub fn pick(&self, due: &[DueHandler], seed: u64) -> Vec<HandlerId> {
        let id = |due: &DueHandler| due.id.clone();
        match self {
            Self::Asap => due
                .iter()
                .min_by_key(|due| due.attempts)
                .map(id)
                .into_iter()
                .collect(),
            Self::OneByOne => due.first().map(id).into_iter().collect(),
            Self::AllAtOnce => due.iter().map(id).collect(),
            Self::Randomized => shuffled(due, seed).iter().take(1).map(id).collect(),
            Self::Shuffled => shuffled(due, seed).iter().map(id).collect(),
            Self::Custom(choice) => {
                let mut left: HashSet<&HandlerId> = due.iter().map(|due| &due.id).collect();
                let mut picked = choice(due);
                // Each is called once in a turn, however often it is named.
                picked.retain(|id| left.remove(id));
                picked
            }
        }
    }
}

impl fmt::Debug for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asap => "Asap",
            Self::OneByOne => "OneByOne",
            Self::AllAtOnce => "AllAtOnce",
            Self::Randomized => "Randomized",
            Self::Shuffled => "Shuffled",
            Self::Custom(_) => "Custom(…)",
        })
    }
}

fn shuffled(due: &[DueHandler], seed: u64) -> Vec<DueHandler> {
    let mut state = seed;
    let mut order = due.to_vec();
    for last in (1..order.len()).rev() {
        let choices = last as u64 + 1;
        let chosen = usize::try_from(split_mix(&mut state) % choices).unwrap_or(last);
        order.swap(last, chosen);
    }
    order
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
