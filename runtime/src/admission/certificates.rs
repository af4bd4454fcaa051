//! Where the certificates of a server come from, and how they are kept up to date.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kopf_core::admission::certificate::{Certificate, NotACertificate};
use kopf_core::admission::rotation::{self, RotationKeys, RotationPolicy, RotationStep, Validity};
use kube::Client;
use tracing::info;

use super::issue::{self, CertificateKeyPair};
use super::secret::{self, SecretStore};
use super::tls::{self, CertificateOrigin, ServingCertificate};

/// Where the certificates of a server come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// An authority and a certificate that are made at the start and kept in memory: for one
    /// process only.
    SelfMade,
    /// Files that somebody else writes; they are read again when they change.
    Files {
        /// The certificate and what leads to its authority, as PEM.
        certificate: PathBuf,
        /// The private key, as PEM.
        key: PathBuf,
        /// The authority, as PEM; without it, API servers must trust it anyway.
        authority: Option<PathBuf>,
    },
    /// A Secret that somebody else writes, with `tls.crt`, `tls.key` and maybe `ca.crt`, as
    /// cert-manager does; it is read again when it changes.
    Secret {
        /// Its name, in the namespace of the operator.
        name: String,
    },
    /// A Secret that the operator itself fills and keeps up to date, for any number of replicas.
    KeptSecret {
        /// Its name, in the namespace of the operator.
        name: String,
        /// How long certificates count.
        policy: RotationPolicy,
    },
}

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot make certificates")]
    Issue(#[from] rcgen::Error),
    #[error(transparent)]
    Secret(#[from] secret::Error),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Unreadable(#[from] NotACertificate),
}

impl Error {
    /// Whether somebody else is to make the certificates, and has not yet.
    pub(super) fn is_early(&self) -> bool {
        let missing = secret::Error::is_missing;
        matches!(self, Self::Secret(error) if missing(error))
    }
}

/// The certificates of one server over time.
pub(super) struct CertificateLoader {
    hosts: Vec<String>,
    source: CertificateSource,
}

enum CertificateSource {
    Memory {
        keys: Option<Box<CertificateSet>>,
        policy: RotationPolicy,
    },
    Files {
        certificate: PathBuf,
        key: PathBuf,
        authority: Option<PathBuf>,
    },
    Secret(SecretStore),
    KeptSecret {
        store: SecretStore,
        policy: RotationPolicy,
    },
}

/// Authorities and the certificate that one of them signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CertificateSet {
    pub(super) authority: CertificateKeyPair,
    pub(super) leaf: CertificateKeyPair,
    pub(super) hosts: Vec<String>,
    pub(super) next: Option<(CertificateKeyPair, Timestamp)>,
    pub(super) previous: Option<(String, Timestamp)>,
    pub(super) revision: u64,
}

// === impl CertificateLoader ===

impl CertificateLoader {
    pub(super) fn new(
        certificates: &Certificates,
        hosts: Vec<String>,
        client: &Client,
        namespace: &str,
    ) -> Self {
        let store = |name: &str| SecretStore::new(client.clone(), namespace, name);
        let source = match certificates {
            Certificates::SelfMade => CertificateSource::Memory {
                keys: None,
                policy: RotationPolicy::default(),
            },
            Certificates::Files {
                certificate,
                key,
                authority,
            } => CertificateSource::Files {
                certificate: certificate.clone(),
                key: key.clone(),
                authority: authority.clone(),
            },
            Certificates::Secret { name } => CertificateSource::Secret(store(name)),
            Certificates::KeptSecret { name, policy } => CertificateSource::KeptSecret {
                store: store(name),
                policy: policy.clone(),
            },
        };
        Self { hosts, source }
    }

    /// What is to be served now.
    pub(super) async fn load(&mut self, now: Timestamp) -> Result<ServingCertificate, Error> {
        match &mut self.source {
            CertificateSource::Memory { keys, policy } => {
                loop {
                    let facts = keys
                        .as_ref()
                        .map(|keys| keys.facts(&self.hosts))
                        .transpose()?;
                    let step = rotation::next(facts.as_ref(), policy, now);
                    let present = keys.take().map(|keys| *keys);
                    let (next, waits) = advance(present, step, &self.hosts, policy, now)?;
                    *keys = Some(Box::new(next));
                    if waits {
                        break;
                    }
                }
                let keys = keys.as_ref().expect("a step that waits leaves keys");
                Ok(keys.material())
            }
            CertificateSource::Files {
                certificate,
                key,
                authority,
            } => Ok(ServingCertificate {
                chain: read(certificate).await?,
                key: read(key).await?,
                bundle: match authority {
                    Some(authority) => Some(read(authority).await?),
                    None => None,
                },
                revision: None,
            }),
            CertificateSource::Secret(store) => Ok(store.read().await?),
            CertificateSource::KeptSecret { store, policy } => {
                let keys = store.keep(&self.hosts, policy, now).await?;
                Ok(keys.material())
            }
        }
    }

    pub(super) fn origin(&self) -> CertificateOrigin {
        match &self.source {
            CertificateSource::Memory { .. } => CertificateOrigin {
                chain: "the certificate".to_owned(),
                key: "the key".to_owned(),
            },
            CertificateSource::Files {
                certificate, key, ..
            } => CertificateOrigin {
                chain: certificate.display().to_string(),
                key: key.display().to_string(),
            },
            CertificateSource::Secret(store) | CertificateSource::KeptSecret { store, .. } => {
                CertificateOrigin {
                    chain: format!("tls.crt of {store}"),
                    key: format!("tls.key of {store}"),
                }
            }
        }
    }
}

pub(super) async fn read(path: &Path) -> Result<String, Error> {
    tokio::fs::read_to_string(path)
        .await
        .map_err(|source| Error::File {
            path: path.to_owned(),
            source,
        })
}

/// Does one step, and tells whether that was all for now.
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
        Ok::<_, Error>(issue::leaf(authority, hosts, now, lifetime)?)
    };
    let Some(mut keys) = keys.filter(|_| step != RotationStep::Create) else {
        info!("new certificates are made for {}", hosts.join(", "));
        let authority = issue::authority(now, policy.authority_lifetime)?;
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
        // Covered above: there is nothing to keep.
        RotationStep::Create => {}
        RotationStep::Renew => {
            info!("the server certificate is renewed");
            keys.leaf = leaf(&keys.authority)?;
            keys.hosts = hosts.to_vec();
        }
        RotationStep::Publish => {
            info!("the next authority is published beside the present one");
            let next = issue::authority(now, policy.authority_lifetime)?;
            keys.next = Some((next, now));
        }
        RotationStep::Switch => {
            if let Some((next, _)) = keys.next.take() {
                info!("the next authority signs from now on");
                keys.leaf = leaf(&next)?;
                keys.hosts = hosts.to_vec();
                let previous = std::mem::replace(&mut keys.authority, next);
                keys.previous = Some((previous.certificate, now));
            }
        }
        RotationStep::Forget => {
            info!("the previous authority is forgotten");
            keys.previous = None;
        }
    }
    keys.revision = revision(keys.revision);
    Ok((keys, false))
}

// === impl CertificateSet ===

impl CertificateSet {
    /// What decisions about the keys need to know.
    pub(super) fn facts(&self, hosts: &[String]) -> Result<RotationKeys, Error> {
        Ok(RotationKeys {
            authority: validity(&self.authority.certificate)?,
            leaf: validity(&self.leaf.certificate)?,
            covers_hosts: self.hosts == hosts,
            next_published: self.next.as_ref().map(|(_, published)| *published),
            previous_retired: self.previous.as_ref().map(|(_, retired)| *retired),
        })
    }

    /// All authorities that are to be trusted.
    pub(super) fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|(next, _)| &next.certificate);
        let previous = self.previous.as_ref().map(|(previous, _)| previous);
        let all = [Some(&self.authority.certificate), next, previous];
        all.into_iter().flatten().map(String::as_str).collect()
    }

    pub(super) fn material(&self) -> ServingCertificate {
        ServingCertificate {
            chain: self.leaf.certificate.clone(),
            key: self.leaf.key.clone(),
            bundle: Some(self.bundle()),
            revision: Some(self.revision),
        }
    }
}

fn validity(certificate: &str) -> Result<Validity, Error> {
    let chain = tls::certificates(certificate, "the certificate")?;
    let facts = Certificate::from_der(&chain[0])?;
    Ok(Validity {
        from: facts.not_before,
        until: facts.not_after,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rotation_goes_through_its_steps_and_ends_with_one_authority() {
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
            let facts = keys.as_ref().map(|keys| keys.facts(&hosts).unwrap());
            let step = rotation::next(facts.as_ref(), &policy, now);
            let (next, waits) = advance(keys, step, &hosts, &policy, now).unwrap();
            if waits {
                now += Duration::from_secs(10);
            } else {
                authorities.push(next.bundle().matches("BEGIN").count());
                revisions.push(next.revision);
            }
            keys = Some(next);
        }
        // Made, renewed, published, switched, forgotten, renewed.
        assert_eq!(authorities[..2], [1, 1]);
        let most = authorities.iter().max();
        assert_eq!((most, authorities.last()), (Some(&2), Some(&1)));
        assert!(revisions.is_sorted_by(|a, b| a < b));
    }
}
