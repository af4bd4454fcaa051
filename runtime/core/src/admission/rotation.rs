//! Decides when certificates are created, renewed and dropped, so that clients always trust the
//! certificate that is served.
//!
//! A new authority is first published beside the old one. When all clients had time to read it,
//! the server begins to use it. When all replicas had time to do so, the old one is dropped.

use std::time::Duration;

use jiff::Timestamp;

use crate::time::{after, elapsed};

/// The lifetimes of certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationPolicy {
    /// The lifetime of an authority.
    pub authority_lifetime: Duration,
    /// The lifetime of a server certificate.
    pub leaf_lifetime: Duration,
    /// The time in which all clients and replicas read a change.
    pub spread: Duration,
}

/// The validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub until: Timestamp,
}

/// The present certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotationKeys {
    /// The authority that signs.
    pub authority: Validity,
    /// The certificate that is served.
    pub leaf: Validity,
    /// Whether that certificate is for the hosts that are served.
    pub covers_hosts: bool,
    /// The time at which the next authority was published, if there is one.
    pub next_published: Option<Timestamp>,
    /// The time at which the previous authority was replaced, if it is still published.
    pub previous_retired: Option<Timestamp>,
}

/// The next step of the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Create all certificates: the present ones are not valid.
    Create,
    /// Sign another server certificate.
    Renew,
    /// Create the next authority and publish it beside the present one.
    Publish,
    /// Sign with the next authority, and keep the present one published.
    Switch,
    /// Stop publishing the previous authority.
    Forget,
    /// Wait until then.
    Wait(Timestamp),
}

impl Default for RotationPolicy {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self {
            authority_lifetime: day * 365,
            leaf_lifetime: day * 90,
            spread: Duration::from_secs(300),
        }
    }
}

impl Validity {
    /// The time of renewal, after two thirds of the validity: that leaves time for retries.
    fn renewal(self) -> Timestamp {
        after(self.from, elapsed(self.from, self.until) / 3 * 2)
    }
}

/// Decides the next step.
#[must_use]
pub fn next(keys: Option<&RotationKeys>, policy: &RotationPolicy, now: Timestamp) -> RotationStep {
    let Some(keys) = keys else {
        return RotationStep::Create;
    };
    if now >= keys.authority.until || now < keys.authority.from {
        return RotationStep::Create;
    }
    if !keys.covers_hosts || now >= keys.leaf.renewal() || now < keys.leaf.from {
        // A certificate that ends with its authority would not become valid for longer.
        if keys.leaf.until < keys.authority.until || !keys.covers_hosts || now >= keys.leaf.until {
            return RotationStep::Renew;
        }
    }
    if let Some(published) = keys.next_published {
        let ready = after(published, policy.spread);
        return if now >= ready {
            RotationStep::Switch
        } else {
            RotationStep::Wait(ready)
        };
    }
    if let Some(retired) = keys.previous_retired {
        let done = after(retired, policy.spread);
        return if now >= done {
            RotationStep::Forget
        } else {
            RotationStep::Wait(done)
        };
    }
    if now >= keys.authority.renewal() {
        return RotationStep::Publish;
    }
    RotationStep::Wait(keys.authority.renewal().min(keys.leaf.renewal()))
}

#[cfg(test)]
mod tests;
