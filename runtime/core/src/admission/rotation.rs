//! When certificates are made, renewed and given up, so that no request ever meets a stranger.
//!
//! A new authority is first published beside the old one. Only when everybody had time to learn
//! of it, the server begins to use it; and only when every replica had time to do so, the old
//! one is forgotten.

use std::time::Duration;

use jiff::Timestamp;

use crate::time::{after, elapsed};

/// How long things count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationPolicy {
    /// How long an authority counts.
    pub authority_lifetime: Duration,
    /// How long a server certificate counts.
    pub leaf_lifetime: Duration,
    /// How long everybody may take to learn of a change.
    pub spread: Duration,
}

/// From when until when something counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub until: Timestamp,
}

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotationKeys {
    /// The authority that signs.
    pub authority: Validity,
    /// The certificate that is served.
    pub leaf: Validity,
    /// Whether that certificate is for the hosts that are served.
    pub covers_hosts: bool,
    /// When the next authority was published, if there is one.
    pub next_published: Option<Timestamp>,
    /// When the previous authority ceased to sign, if it is still published.
    pub previous_retired: Option<Timestamp>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Make everything anew: what there is no longer counts.
    Create,
    /// Sign another server certificate.
    Renew,
    /// Make the next authority and publish it beside the present one.
    Publish,
    /// Let the next authority sign, and keep the present one published.
    Switch,
    /// Cease to publish the previous authority.
    Forget,
    /// Nothing until then.
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
    /// When it is two thirds over: time to replace it, with time left to repair what goes wrong.
    fn renewal(self) -> Timestamp {
        after(self.from, elapsed(self.from, self.until) / 3 * 2)
    }
}

/// What to do about the certificates now.
#[must_use]
pub fn next(keys: Option<&RotationKeys>, policy: &RotationPolicy, now: Timestamp) -> RotationStep {
    let Some(keys) = keys else {
        return RotationStep::Create;
    };
    if now >= keys.authority.until || now < keys.authority.from {
        return RotationStep::Create;
    }
    if !keys.covers_hosts || now >= keys.leaf.renewal() || now < keys.leaf.from {
        // A leaf beyond its authority's end would not be longer valid than that.
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
