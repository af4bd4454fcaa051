//! Who may act in an election, by the writes that the API server has executed.

use std::collections::BTreeMap;

use super::process::Sender;
use crate::operator::timings;
use crate::server::ApiAnswer;
use crate::time::VirtualTime;
use crate::world::Violation;

/// The times up to which processes may act.
#[derive(Debug, Default)]
pub(super) struct LeaseTerms {
    deadlines: BTreeMap<Sender, VirtualTime>,
    /// The requests that did not find the Lease or its namespace.
    not_found: u32,
}

/// More of them are a loop without pauses.
const MOST_NOT_FOUND: u32 = 300;

// === impl LeaseTerms ===

impl LeaseTerms {
    /// The API server has executed a claim of a process, which sent it at this time, or its release.
    pub(super) fn granted(&mut self, sender: Sender, sent: VirtualTime, answer: &ApiAnswer) {
        let Some(lease) = answer.as_object() else {
            return;
        };
        let own = format!("operator-{}-{}", sender.process, sender.run);
        if lease["spec"]["holderIdentity"] == *own {
            let until = sent.after(timings().renew_deadline);
            let deadline = self.deadlines.entry(sender).or_default();
            *deadline = (*deadline).max(until);
        } else {
            self.deadlines.remove(&sender);
        }
    }

    /// A Lease that is not there, or cannot be, is asked for with pauses.
    pub(super) fn check_pauses(&mut self, answer: &ApiAnswer) -> Result<(), Violation> {
        self.not_found += u32::from(answer.code == 404);
        match self.not_found > MOST_NOT_FOUND {
            true => {
                let details = format!("{} requests have not found it", self.not_found);
                Err(Violation::new(
                    "a missing Lease is asked for with pauses",
                    details,
                ))
            }
            false => Ok(()),
        }
    }

    pub(super) fn ended(&mut self, process: usize) {
        self.deadlines.retain(|sender, _| sender.process != process);
    }

    /// Whether the deadline of a process is not over.
    pub(super) fn is_valid(&self, sender: Sender, now: VirtualTime) -> bool {
        self.deadlines
            .get(&sender)
            .is_some_and(|until| now < *until)
    }

    /// A process acts: its own deadline is not over, and that of every other one is.
    pub(super) fn may_act(
        &self,
        sender: Sender,
        now: VirtualTime,
        act: &str,
    ) -> Result<(), Violation> {
        if !self.is_valid(sender, now) {
            let details = format!("{act} in operator {} at {now}", sender.process);
            return Err(Violation::new(
                "nothing begins and nothing is sent after the own deadline",
                details,
            ));
        }
        let other = self
            .deadlines
            .keys()
            .find(|other| other.process != sender.process && self.is_valid(**other, now));
        match other {
            Some(other) => {
                let (one, two) = (sender.process, other.process);
                let details = format!("{act} in operator {one} while operator {two} leads");
                Err(Violation::new("one operator acts at a time", details))
            }
            None => Ok(()),
        }
    }
}
