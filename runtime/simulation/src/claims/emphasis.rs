//! What others do most in a history: some faults of operators show only if one sort of disturbance
//! comes again and again.

use crate::choices::Choices;

/// A sort of disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisturbanceKind {
    /// An object is created or edited.
    Edit,
    /// An object is deleted.
    Deletion,
    /// Another operator releases an object.
    Release,
    /// A process is killed.
    Crash,
    /// The API server forgets former states.
    Compaction,
    /// A process stands still.
    Freeze,
    ClockJump,
    /// Other webhooks are configured.
    Webhook,
    /// Other permissions are missing.
    Access,
    WatchCut,
    /// What operators have written is removed.
    Removal,
    /// The Lease is taken, or a peer joins.
    Coordination,
    /// A process is asked to stop.
    Stop,
    /// Another client changes an object all the time.
    Contention,
}

/// The sorts, and how many of 60 disturbances are of each without an emphasis.
const SHARES: [(DisturbanceKind, u32); 14] = [
    (DisturbanceKind::Edit, 18),
    (DisturbanceKind::Deletion, 6),
    (DisturbanceKind::Release, 2),
    (DisturbanceKind::Crash, 6),
    (DisturbanceKind::Compaction, 2),
    (DisturbanceKind::Freeze, 4),
    (DisturbanceKind::ClockJump, 2),
    (DisturbanceKind::Webhook, 2),
    (DisturbanceKind::Access, 2),
    (DisturbanceKind::WatchCut, 2),
    (DisturbanceKind::Removal, 2),
    (DisturbanceKind::Coordination, 6),
    (DisturbanceKind::Stop, 4),
    (DisturbanceKind::Contention, 2),
];

/// The share that is added to an emphasized sort.
const EMPHASIS: u32 = 30;

/// The sorts of disturbances that come more often than others in a history, if there are any.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Emphasis([Option<DisturbanceKind>; 2]);

// === impl Emphasis ===

impl Emphasis {
    /// Two sorts in half of the histories.
    pub(super) fn choose(choices: &mut Choices) -> Self {
        if choices.one_of(2) == 0 {
            return Self::default();
        }
        Self([(); 2].map(|()| Some(choices.item(&SHARES).0)))
    }

    /// The sort of the next disturbance.
    pub(super) fn draw(self, choices: &mut Choices) -> DisturbanceKind {
        let emphasized = || self.0.iter().flatten();
        let shares = SHARES.map(|(kind, share)| {
            let times = emphasized().filter(|it| **it == kind).count();
            share + EMPHASIS * u32::try_from(times).unwrap_or_default()
        });
        let mut rest = choices.one_of(shares.iter().sum());
        let mut sorts = SHARES.iter().zip(shares);
        let drawn = sorts.find(|(_, share)| {
            let is_drawn = rest < *share;
            rest = rest.saturating_sub(*share);
            is_drawn
        });
        drawn.map_or(DisturbanceKind::Edit, |((kind, _), _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emphasized_sort_comes_often_and_the_others_still_come() {
        let mut choices = Choices::seeded(1);
        let emphasis = Emphasis([Some(DisturbanceKind::ClockJump), None]);
        let drawn: Vec<DisturbanceKind> = (0..2_000).map(|_| emphasis.draw(&mut choices)).collect();
        let count = |kind| drawn.iter().filter(|it| **it == kind).count();
        assert!((600..900).contains(&count(DisturbanceKind::ClockJump)));
        for (kind, _) in SHARES {
            assert!(count(kind) > 0, "{kind:?}");
        }
    }
}
