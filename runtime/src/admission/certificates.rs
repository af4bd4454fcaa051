//! Loads the certificate of a webhook server from its source.

use std::path::PathBuf;

use jiff::Timestamp;
use kopf_core::admission::rotation::{self, RotationPolicy};
use kube::Client;

use super::authority_source::{AuthoritySource, UnreadableFile, read_file};
use super::certificate_set::{self, CertificateSet, advance};
use super::secret::{self, SecretStore};
use super::tls::{self, CertificateOrigin, ServingCertificate};

/// The source of a server's certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// The server makes an authority and a certificate at its start and keeps them in memory: for
    /// one replica only.
    SelfMade,
    /// Files that another program writes; the server reads them again when they change.
    Files {
        /// The certificate and its intermediate certificates, as PEM.
        certificate: PathBuf,
        /// The private key, as PEM.
        key: PathBuf,
        /// The authority, as PEM; leave it out if API servers trust it already.
        authority: Option<AuthoritySource>,
    },
    /// A Secret that another program writes, such as cert-manager, with `tls.crt`, `tls.key` and
    /// maybe `ca.crt`; the server reads it again when it changes.
    Secret {
        /// Its name, in the namespace of the operator.
        name: String,
    },
    /// A Secret that the operator itself creates and rotates, for any number of replicas.
    KeptSecret {
        /// Its name, in the namespace of the operator.
        name: String,
        /// The validity and rotation of the certificates.
        policy: RotationPolicy,
    },
}

/// Certificates cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Secret(#[from] secret::Error),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Rotation(#[from] certificate_set::Error),
}

impl Error {
    /// Returns true if the program that makes the certificates has not done so yet.
    pub(super) fn is_early(&self) -> bool {
        let missing = secret::Error::is_missing;
        matches!(self, Self::Secret(error) if missing(error))
    }
}

impl From<UnreadableFile> for Error {
    fn from(UnreadableFile { path, source }: UnreadableFile) -> Self {
        Self::File { path, source }
    }
}

/// Loads the certificates of one server, again and again.
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
        authority: Option<AuthoritySource>,
    },
    Secret(SecretStore),
    KeptSecret {
        store: SecretStore,
        policy: RotationPolicy,
    },
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

    /// The certificate to be served now.
    pub(super) async fn load(&mut self, now: Timestamp) -> Result<ServingCertificate, Error> {
        match &mut self.source {
            CertificateSource::Memory { keys, policy } => {
                loop {
                    let rotation_keys = keys
                        .as_ref()
                        .map(|keys| keys.rotation_keys(&self.hosts))
                        .transpose()?;
                    let step = rotation::next(rotation_keys.as_ref(), policy, now);
                    let present = keys.take().map(|keys| *keys);
                    let (next, waits) = advance(present, step, &self.hosts, policy, now)?;
                    *keys = Some(Box::new(next));
                    if waits {
                        break;
                    }
                }
                let keys = keys.as_ref().expect("a step that waits leaves keys");
                Ok(keys.serving())
            }
            CertificateSource::Files {
                certificate,
                key,
                authority,
            } => Ok(ServingCertificate {
                chain: read_file(certificate).await?,
                key: read_file(key).await?,
                bundle: match authority {
                    Some(authority) => Some(authority.read().await?),
                    None => None,
                },
                revision: None,
            }),
            CertificateSource::Secret(store) => Ok(store.read().await?),
            CertificateSource::KeptSecret { store, policy } => {
                let keys = store.keep(&self.hosts, policy, now).await?;
                Ok(keys.serving())
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
