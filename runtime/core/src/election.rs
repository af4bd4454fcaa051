//! One leader among replicas, by a Lease that its holder renews.
//!
//! No time stamp of another machine is ever compared: a candidate counts from the moment at which
//! it saw the Lease change, the holder from the moment at which it asked for its renewal. Both
//! count on a clock that never jumps, so the holder stops before a candidate may begin.

use std::time::Duration;

/// How long a lease lasts, and how it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimings {
    /// A lease that was not renewed for so long may be taken by another.
    pub duration: Duration,
    /// A holder that could not renew for so long stops; shorter than the duration.
    pub renew_deadline: Duration,
    /// The pause between renewals, and between attempts.
    pub retry_period: Duration,
}

/// Terms that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A holder would still act when another begins.
    #[error("the renew deadline must be shorter than the lease")]
    DeadlineTooLong,
    /// A holder would stop before its first renewal.
    #[error("the retry period must be shorter than the renew deadline, and not zero")]
    RetryTooLong,
    /// The Lease holds whole seconds.
    #[error("the lease must last whole seconds, at least one")]
    NotWholeSeconds,
}

/// What a Lease says, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it; nobody after it was given back.
    pub holder: Option<String>,
    /// How long it lasts without renewal, in the timings of its holder.
    pub duration: Duration,
    /// The version of the object: any write changes it.
    pub version: String,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionStep {
    /// Make the Lease one's own.
    Acquire,
    /// Renew it.
    Renew,
    /// Nothing for so long, unless the Lease changes.
    Wait(Duration),
}

/// One replica, with what it knows. All times are its own uptime.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    timings: LeaseTimings,
    observed: Option<(Lease, Duration)>,
    held: Option<HeldLease>,
    not_before: Duration,
}

#[derive(Clone, Copy, Debug)]
struct HeldLease {
    until: Duration,
    renew_at: Duration,
}

// === impl LeaseTimings ===

impl Default for LeaseTimings {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeaseTimings {
    /// Whether these timings can work.
    ///
    /// # Errors
    /// If they cannot.
    pub fn check(&self) -> Result<(), Error> {
        if self.duration.is_zero() || self.duration.subsec_nanos() != 0 {
            return Err(Error::NotWholeSeconds);
        }
        if self.renew_deadline >= self.duration {
            return Err(Error::DeadlineTooLong);
        }
        if self.retry_period.is_zero() || self.retry_period >= self.renew_deadline {
            return Err(Error::RetryTooLong);
        }
        Ok(())
    }
}

// === impl Candidate ===

impl Candidate {
    /// A replica that knows nothing yet.
    #[must_use]
    pub fn new(identity: String, timings: LeaseTimings) -> Self {
        Self {
            identity,
            timings,
            observed: None,
            held: None,
            not_before: Duration::ZERO,
        }
    }

    /// Who this is.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Takes in the Lease as it was seen; `None` if there is none.
    pub fn observe(&mut self, lease: Option<Lease>, now: Duration) {
        match (&self.observed, lease) {
            (Some((known, _)), Some(lease)) if known.version == lease.version => {}
            (_, lease) => self.observed = lease.map(|lease| (lease, now)),
        }
    }

    /// The server accepted what was sent at `sent`: the lease is ours, from then on.
    pub fn granted(&mut self, lease: Lease, sent: Duration, now: Duration) {
        self.observe(Some(lease), now);
        self.held = Some(HeldLease {
            until: sent.saturating_add(self.timings.renew_deadline),
            renew_at: sent.saturating_add(self.timings.retry_period),
        });
    }

    /// What was sent did not do, or nobody knows.
    pub fn refused(&mut self, now: Duration) {
        let again = now.saturating_add(self.timings.retry_period);
        self.not_before = again;
        if let Some(held) = &mut self.held {
            held.renew_at = again;
        }
    }

    /// Until when this replica may act; `None` if it may not.
    #[must_use]
    pub fn holds_until(&self, now: Duration) -> Option<Duration> {
        let until = self.held?.until;
        (now < until && self.is_holder()).then_some(until)
    }

    /// Gives up: nothing may be done any more.
    pub fn resign(&mut self) {
        self.held = None;
    }

    /// The other replica that holds the lease, as far as this one knows.
    #[must_use]
    pub fn other_holder(&self) -> Option<&str> {
        let (lease, _) = self.observed.as_ref()?;
        lease.holder.as_deref().filter(|it| *it != self.identity)
    }

    /// The version of the Lease that was seen last.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.observed
            .as_ref()
            .map(|(lease, _)| lease.version.as_str())
    }

    /// What to do now.
    #[must_use]
    pub fn step(&self, now: Duration) -> ElectionStep {
        if let Some(until) = self.holds_until(now) {
            let renew_at = self.held.map_or(now, |held| held.renew_at);
            let wait = renew_at.min(until).saturating_sub(now);
            return if now >= renew_at {
                ElectionStep::Renew
            } else {
                ElectionStep::Wait(wait)
            };
        }
        let free_at = match &self.observed {
            Some((lease, observed_at)) if self.other_holder().is_some() => {
                observed_at.saturating_add(lease.duration)
            }
            _ => now,
        };
        let wait = free_at.max(self.not_before).saturating_sub(now);
        if wait.is_zero() {
            ElectionStep::Acquire
        } else {
            ElectionStep::Wait(wait)
        }
    }

    fn is_holder(&self) -> bool {
        let holder = self
            .observed
            .as_ref()
            .and_then(|(lease, _)| lease.holder.as_deref());
        holder == Some(self.identity.as_str())
    }
}

#[cfg(test)]
mod tests;
