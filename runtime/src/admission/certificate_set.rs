//! A set of authorities and the server certificate, and one step of its rotation.

use jiff::Timestamp;
use kopf_core::admission::certificate::{Certificate, NotACertificate};
use kopf_core::admission::rotation::{RotationKeys, RotationPolicy, RotationStep, Validity};
use tracing::info;

use super::issue_certificate::{self, CertificateKeyPair};
use super::tls::{self, ServingCertificate};

/// The authorities and the server certificate that one of them signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CertificateSet {
    pub(super) authority: CertificateKeyPair,
    pub(super) leaf: CertificateKeyPair,
    pub(super) hosts: Vec<String>,
    pub(super) next: Option<(CertificateKeyPair, Timestamp)>,
    pub(super) previous: Option<(String, Timestamp)>,
    pub(super) revision: u64,
}

/// A rotation step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot make certificates")]
    Issue(#[from] rcgen::Error),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Unreadable(#[from] NotACertificate),
}

/// Takes one step of the rotation. Returns whether nothing more is due now.
pub(super) fn advance(
    keys: Option<CertificateSet>,
    step: RotationStep,
    hosts: &[String],
    policy: &RotationPolicy,
    now: Timestamp,
) -> Result<(CertificateSet, bool), Error> {
    let revision = |before: u64| {
        let now = u64::try_from(now.as_millisecond()).unwrap_or_default();
        now.max(before + 1)
    };
    let leaf = |authority: &CertificateKeyPair| {
        let rest = kopf_core::time::elapsed(now, validity(&authority.certificate)?.until);
        let lifetime = policy.leaf_lifetime.min(rest);
        Ok::<_, Error>(issue_certificate::leaf(authority, hosts, now, lifetime)?)
    };
    let Some(mut keys) = keys.filter(|_| step != RotationStep::Create) else {
        info!("making new certificates for {}", hosts.join(", "));
        let authority = issue_certificate::authority(now, policy.authority_lifetime)?;
        let keys = CertificateSet {
            leaf: leaf(&authority)?,
            authority,
            hosts: hosts.to_vec(),
            next: None,
            previous: None,
            revision: revision(0),
        };
        return Ok((keys, false));
    };
    match step {
        RotationStep::Wait(_) => return Ok((keys, true)),
        // Done above.
        RotationStep::Create => {}
        RotationStep::Renew => {
            info!("renewing the server certificate");
            keys.leaf = leaf(&keys.authority)?;
            keys.hosts = hosts.to_vec();
        }
        RotationStep::Publish => {
            info!("publishing the next authority beside the current one");
            let next = issue_certificate::authority(now, policy.authority_lifetime)?;
            keys.next = Some((next, now));
        }
        RotationStep::Switch => {
            if let Some((next, _)) = keys.next.take() {
                info!("the next authority signs the server certificate from now on");
                keys.leaf = leaf(&next)?;
                keys.hosts = hosts.to_vec();
                let previous = std::mem::replace(&mut keys.authority, next);
                keys.previous = Some((previous.certificate, now));
            }
        }
        RotationStep::Forget => {
            info!("removing the previous authority");
            keys.previous = None;
        }
    }
    keys.revision = revision(keys.revision);
    Ok((keys, false))
}

// === impl CertificateSet ===

impl CertificateSet {
    /// The set as the rotation rules need it.
    pub(super) fn rotation_keys(&self, hosts: &[String]) -> Result<RotationKeys, Error> {
        Ok(RotationKeys {
            authority: validity(&self.authority.certificate)?,
            leaf: validity(&self.leaf.certificate)?,
            covers_hosts: self.hosts == hosts,
            next_published: self.next.as_ref().map(|(_, published)| *published),
            previous_retired: self.previous.as_ref().map(|(_, retired)| *retired),
        })
    }

    /// All authorities that clients should trust, as PEM.
    pub(super) fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|(next, _)| &next.certificate);
        let previous = self.previous.as_ref().map(|(previous, _)| previous);
        let all = [Some(&self.authority.certificate), next, previous];
        all.into_iter().flatten().map(String::as_str).collect()
    }

    pub(super) fn serving(&self) -> ServingCertificate {
        ServingCertificate {
            chain: self.leaf.certificate.clone(),
            key: self.leaf.key.clone(),
            bundle: Some(self.bundle()),
            revision: Some(self.revision),
        }
    }
}

/// The reason why clients refuse the certificate from this origin now, whatever else it says.
pub(super) fn refusal(certificate: &str, origin: &str, now: Timestamp) -> Option<String> {
    let validity = validity(certificate).ok()?;
    let why = if now >= validity.until {
        format!("has expired at {}", validity.until)
    } else if now < validity.from {
        format!("is not valid before {}", validity.from)
    } else {
        return None;
    };
    Some(format!(
        "the API server refuses to call webhooks: the certificate in {origin} {why}"
    ))
}

fn validity(certificate: &str) -> Result<Validity, Error> {
    let chain = tls::certificates(certificate, "the certificate")?;
    let certificate = Certificate::from_der(&chain[0])?;
    Ok(Validity {
        from: certificate.not_before,
        until: certificate.not_after,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kopf_core::admission::rotation;

    use super::*;

    #[test]
    fn a_certificate_is_refused_before_and_after_its_time() {
        let day = Duration::from_secs(24 * 3600);
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let authority = issue_certificate::authority(now, 10 * day).unwrap();
        let hosts = ["localhost".to_owned()];
        let leaf = issue_certificate::leaf(&authority, &hosts, now, day).unwrap();
        let refused = |now| refusal(&leaf.certificate, "tls.crt", now);
        assert_eq!(refused(now), None);
        let why = refused(now + day).unwrap();
        let expected = "the certificate in tls.crt has expired at 2027-01-16T08:00:00Z";
        assert!(why.ends_with(expected), "{why}");
        let why = refused(now - 2 * day).unwrap();
        assert!(
            why.contains("in tls.crt is not valid before 2027-01-1"),
            "{why}"
        );
    }

    #[test]
    fn a_rotation_publishes_a_second_authority_and_ends_with_one() {
        let policy = RotationPolicy {
            authority_lifetime: Duration::from_secs(3000),
            leaf_lifetime: Duration::from_secs(1500),
            spread: Duration::from_secs(100),
        };
        let hosts = ["localhost".to_owned()];
        let mut now = Timestamp::from_second(1_800_000_000).unwrap();
        let mut keys: Option<CertificateSet> = None;
        let mut authorities = Vec::new();
        let mut revisions = Vec::new();
        let end = now + Duration::from_secs(2600);
        while now < end {
            let present = keys
                .as_ref()
                .map(|keys| keys.rotation_keys(&hosts).unwrap());
            let step = rotation::next(present.as_ref(), &policy, now);
            let (next, waits) = advance(keys, step, &hosts, &policy, now).unwrap();
            if waits {
                now += Duration::from_secs(10);
            } else {
                authorities.push(next.bundle().matches("BEGIN").count());
                revisions.push(next.revision);
            }
            keys = Some(next);
        }
        // Create, renew, publish, switch, forget, renew.
        assert_eq!(authorities[..2], [1, 1]);
        let most = authorities.iter().max();
        assert_eq!((most, authorities.last()), (Some(&2), Some(&1)));
        assert!(revisions.is_sorted_by(|a, b| a < b));
    }
}
