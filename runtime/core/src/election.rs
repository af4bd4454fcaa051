//! Leader election: one replica holds a Lease and renews it.
//!
//! No time stamp of another machine is compared. A candidate counts from the time at which it
//! observed a change of the Lease, the holder from the time at which it sent its last renewal. Both
//! use a monotonic clock, so the holder stops before a candidate may begin.

pub mod elector;

use std::time::Duration;

/// The durations of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimings {
    /// Another replica may take a lease that was not renewed for so long.
    pub duration: Duration,
    /// A holder that could not renew for so long stops; shorter than the duration.
    pub renew_deadline: Duration,
    /// The pause between renewals, and between attempts.
    pub retry_period: Duration,
}

/// Invalid durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A holder could still act when another one begins.
    #[error("the renew deadline must be shorter than the lease")]
    DeadlineTooLong,
    /// A holder would stop before its first renewal.
    #[error("the retry period must be shorter than the renew deadline, and not zero")]
    RetryTooLong,
    /// The Lease holds whole seconds.
    #[error("the lease must last whole seconds, at least one")]
    NotWholeSeconds,
    /// The Lease holds a number of 32 bits.
    #[error("the lease must not last longer than {} seconds", i32::MAX)]
    LeaseTooLong,
}

/// The content of a Lease, as far as the election needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The identity of the holder; none after it was released.
    pub holder: Option<String>,
    /// Its duration without renewal, as its holder set it.
    pub duration: Duration,
    /// The resource version.
    pub version: String,
}

/// The next step of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionStep {
    /// Take the Lease.
    Acquire,
    /// Renew it.
    Renew,
    /// Wait for so long, unless the Lease changes.
    Wait(Duration),
}

/// One replica of the election. All times are its own uptime.
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
    /// Checks the durations.
    ///
    /// # Errors
    /// If they are invalid.
    pub fn check(&self) -> Result<(), Error> {
        if self.duration.is_zero() || self.duration.subsec_nanos() != 0 {
            return Err(Error::NotWholeSeconds);
        }
        if i32::try_from(self.duration.as_secs()).is_err() {
            return Err(Error::LeaseTooLong);
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
    /// A replica that has not observed the Lease.
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

    /// The identity of this replica.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Records the Lease as it is; `None` if there is none.
    pub fn observe(&mut self, lease: Option<Lease>, now: Duration) {
        match (&self.observed, lease) {
            (Some((known, _)), Some(lease)) if known.version == lease.version => {}
            (_, lease) => self.observed = lease.map(|lease| (lease, now)),
        }
    }

    /// The API server accepted the request that was sent at `sent`: the lease is ours from then on.
    pub fn granted(&mut self, lease: Lease, sent: Duration, now: Duration) {
        self.observe(Some(lease), now);
        self.held = Some(HeldLease {
            until: sent.saturating_add(self.timings.renew_deadline),
            renew_at: sent.saturating_add(self.timings.retry_period),
        });
    }

    /// The API server rejected the request, or its result is unknown.
    pub fn refused(&mut self, now: Duration) {
        let again = now.saturating_add(self.timings.retry_period);
        self.not_before = again;
        if let Some(held) = &mut self.held {
            held.renew_at = again;
        }
    }

    /// Does not try to acquire the lease before this pause is over; a holder renews it all the same.
    pub fn postpone(&mut self, now: Duration, pause: Duration) {
        self.not_before = self.not_before.max(now.saturating_add(pause));
    }

    /// The time until which this replica may act; `None` if it may not.
    #[must_use]
    pub fn holds_until(&self, now: Duration) -> Option<Duration> {
        let until = self.held?.until;
        (now < until && self.is_holder()).then_some(until)
    }

    /// Gives the lease up: this replica may no longer act.
    pub fn resign(&mut self) {
        self.held = None;
    }

    /// The identity of another replica that holds the lease, if one does.
    #[must_use]
    pub fn other_holder(&self) -> Option<&str> {
        let (lease, _) = self.observed.as_ref()?;
        lease.holder.as_deref().filter(|it| *it != self.identity)
    }

    /// The resource version of the last observed Lease.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.observed
            .as_ref()
            .map(|(lease, _)| lease.version.as_str())
    }

    /// Decides the next step.
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
            Some((lease, observed_at))
                if self.other_holder().is_some() && !planted!(CandidateDoesNotWait) =>
            {
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
