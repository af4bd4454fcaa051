//! Pauses of the operator: whether an attempt may begin, and whether a write may be sent.
//!
//! Each part that can pause the operator has a slot; the operator runs while none of them pauses
//! it. A pause begins a new epoch: work planned in an earlier epoch is dropped.

/// The slots of all parts that can pause the operator, and the term of its lease.
///
/// `R` is the reason of a pause, `T` an instant of a clock that never jumps.
#[derive(Debug, Clone)]
pub struct PauseState<R, T> {
    epoch: u64,
    slots: Vec<PauseSlot<R>>,
    lease_term: LeaseTerm<T>,
}

/// The place of one part among all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PauseSlot<R> {
    /// The part has ended; the next one takes its place.
    Free,
    Running,
    Paused(R),
}

/// The time up to which the operator may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseTerm<T> {
    /// There is no leader election.
    Unlimited,
    /// Up to this moment, unless the lease is renewed.
    Until(T),
    /// Not at all.
    Over,
}

/// A change of one slot.
#[derive(Debug)]
pub enum PauseChange<R, T> {
    /// The operator pauses.
    Pause(R),
    /// The pause of this part ends.
    Resume,
    /// The pause of this part ends, and the operator may write up to this moment.
    ResumeUntil(T),
    /// The operator pauses, and all writes are forbidden.
    Forbid(R),
}

// === impl PauseState ===

impl<R, T> Default for PauseState<R, T> {
    fn default() -> Self {
        Self {
            epoch: 0,
            slots: Vec::new(),
            lease_term: LeaseTerm::Unlimited,
        }
    }
}

impl<R: PartialEq, T: Copy + Ord> PauseState<R, T> {
    /// Takes a slot for a part; paused for this reason, or running. A free slot is taken first, so
    /// that namespaces that come and go leave none behind.
    pub fn take_slot(&mut self, reason: Option<R>) -> usize {
        let slot = reason.map_or(PauseSlot::Running, PauseSlot::Paused);
        let free = self.slots.iter().position(|it| *it == PauseSlot::Free);
        match free {
            Some(index) => {
                self.slots[index] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        }
    }

    /// Frees the slot of a part that has ended. A pause stays: a part that ends by a defect must
    /// not resume the operator.
    pub fn free_slot(&mut self, index: usize) {
        if self.slots[index] == PauseSlot::Running {
            self.slots[index] = PauseSlot::Free;
        }
    }

    /// Changes the slot of a part.
    pub fn change(&mut self, index: usize, change: PauseChange<R, T>, now: T) {
        let ran = self.pause().is_none();
        let lease_ended = matches!(self.lease_term, LeaseTerm::Until(until) if now >= until);
        let (slot, term) = match change {
            PauseChange::Pause(reason) => (PauseSlot::Paused(reason), self.lease_term),
            PauseChange::Resume => (PauseSlot::Running, self.lease_term),
            PauseChange::ResumeUntil(until) => (PauseSlot::Running, LeaseTerm::Until(until)),
            PauseChange::Forbid(reason) => (PauseSlot::Paused(reason), LeaseTerm::Over),
        };
        self.slots[index] = slot;
        self.lease_term = term;
        // Work that was rejected after the lease had ended must be planned again.
        if lease_ended || (ran && self.pause().is_some()) {
            self.epoch += 1;
        }
    }

    /// The number of pauses so far.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The reason for the current pause, if there is one.
    pub fn pause(&self) -> Option<&R> {
        self.slots.iter().find_map(|slot| match slot {
            PauseSlot::Paused(reason) => Some(reason),
            PauseSlot::Free | PauseSlot::Running => None,
        })
    }

    /// The time up to which the operator may write.
    pub fn lease_term(&self) -> LeaseTerm<T> {
        self.lease_term
    }

    /// Whether a write may be sent now. While the operator is paused in favour of a peer, handlers
    /// that run may finish, and what they did is recorded.
    pub fn may_write(&self, now: T) -> bool {
        match self.lease_term {
            LeaseTerm::Unlimited => true,
            LeaseTerm::Until(until) => now < until || planted!(LeaseTermIgnored),
            LeaseTerm::Over => false,
        }
    }

    /// Whether an attempt may begin now.
    pub fn is_running(&self, now: T) -> bool {
        self.pause().is_none() && self.may_write(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_ended_unnoticed_begins_a_new_epoch_when_it_is_renewed() {
        let mut state: PauseState<&str, u32> = PauseState::default();
        let slot = state.take_slot(Some("starting"));
        state.change(slot, PauseChange::ResumeUntil(10), 0);
        assert_eq!((state.epoch(), state.is_running(9)), (0, true));
        assert!(!state.is_running(10), "nothing had to happen for that");
        state.change(slot, PauseChange::ResumeUntil(20), 12);
        assert_eq!((state.epoch(), state.is_running(12)), (1, true));
    }

    #[test]
    fn writes_go_on_in_a_pause_for_a_peer_but_not_without_the_lease() {
        let mut state: PauseState<&str, u32> = PauseState::default();
        let (lease, peers) = (state.take_slot(None), state.take_slot(None));
        state.change(lease, PauseChange::ResumeUntil(10), 0);
        state.change(peers, PauseChange::Pause("peers"), 1);
        assert!(state.may_write(1) && !state.is_running(1));
        state.change(lease, PauseChange::Forbid("standby"), 2);
        assert!(!state.may_write(2));
        state.change(peers, PauseChange::Resume, 3);
        assert_eq!(state.pause(), Some(&"standby"));
        assert_eq!(state.epoch(), 1, "one pause, for whatever reasons");
    }
}
