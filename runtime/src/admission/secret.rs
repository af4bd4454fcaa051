//! Certificates in a Secret, which another program writes or all replicas of the operator share.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kopf_core::admission::rotation::{self, RotationPolicy};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};
use tracing::{debug, warn};

use super::certificate_set::{self, CertificateSet, advance};
use super::issue_certificate::CertificateKeyPair;
use super::tls::ServingCertificate;

/// A Secret in the namespace of the operator.
pub(super) struct SecretStore {
    api: Api<Secret>,
    namespace: String,
    name: String,
}

/// Certificates cannot be read from or written to a Secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{verb} {secret}")]
    Request {
        verb: &'static str,
        secret: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("{0} does not exist")]
    Missing(String),
    #[error("{secret} has no text in `{key}`")]
    NoText { secret: String, key: &'static str },
    #[error("the certificates of {0} cannot be rotated")]
    Rotation(String, #[source] certificate_set::Error),
    #[error("other clients change {0} all the time")]
    Contended(String),
}

impl Error {
    /// Returns true if the Secret or its certificate does not exist yet.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::NoText { .. })
    }
}

const HOSTS: &str = "webhooks.kopf-gen.dev/hosts";
const REVISION: &str = "webhooks.kopf-gen.dev/revision";
const PUBLISHED: &str = "webhooks.kopf-gen.dev/next-authority-published";
const RETIRED: &str = "webhooks.kopf-gen.dev/previous-authority-retired";

const CHAIN: &str = "tls.crt";
const KEY: &str = "tls.key";
const BUNDLE: &str = "ca.crt";
const AUTHORITY: &str = "authority.crt";
const AUTHORITY_KEY: &str = "authority.key";
const NEXT: &str = "next-authority.crt";
const NEXT_KEY: &str = "next-authority.key";
const PREVIOUS: &str = "previous-authority.crt";

/// Each conflict means that another replica has written; there are few replicas.
const ATTEMPTS: usize = 10;

impl SecretStore {
    pub(super) fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
        }
    }

    /// The certificate that another program wrote.
    pub(super) async fn read(&self) -> Result<ServingCertificate, Error> {
        let secret = self.get().await?;
        let secret = secret.ok_or_else(|| Error::Missing(self.to_string()))?;
        let text = |key| text(&secret, key);
        let needed = |key| {
            text(key).ok_or_else(|| Error::NoText {
                secret: self.to_string(),
                key,
            })
        };
        Ok(ServingCertificate {
            chain: needed(CHAIN)?,
            key: needed(KEY)?,
            bundle: text(BUNDLE),
            revision: None,
        })
    }

    /// The certificates after all rotation steps that are due. The first replica to write wins, and
    /// the others read its result.
    pub(super) async fn keep(
        &self,
        hosts: &[String],
        policy: &RotationPolicy,
        now: Timestamp,
    ) -> Result<CertificateSet, Error> {
        let failed = |error| Error::Rotation(self.to_string(), error);
        for _ in 0..ATTEMPTS {
            let secret = self.get().await?;
            let keys = secret.as_ref().and_then(read_keys);
            let rotation_keys = keys
                .as_ref()
                .map(|keys| keys.rotation_keys(hosts))
                .transpose()
                .unwrap_or_else(|error| {
                    warn!("making new certificates for {self}: {error}");
                    None
                });
            let step = rotation::next(rotation_keys.as_ref(), policy, now);
            let (keys, waits) = advance(keys, step, hosts, policy, now).map_err(failed)?;
            if waits {
                return Ok(keys);
            }
            self.write(secret, &keys).await?;
        }
        Err(Error::Contended(self.to_string()))
    }

    async fn get(&self) -> Result<Option<Secret>, Error> {
        let found = self.api.get_opt(&self.name).await;
        found.map_err(|source| self.failed("cannot read", source))
    }

    /// Writes, unless another replica has written since the Secret was read.
    async fn write(&self, secret: Option<Secret>, keys: &CertificateSet) -> Result<(), Error> {
        let params = PostParams::default();
        let written = match secret {
            Some(mut secret) => {
                put_keys(&mut secret, keys);
                self.api.replace(&self.name, &params, &secret).await
            }
            None => {
                let mut secret = Secret::default();
                secret.metadata.name = Some(self.name.clone());
                put_keys(&mut secret, keys);
                self.api.create(&params, &secret).await
            }
        };
        match written {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                debug!("another replica has changed {self} meanwhile");
                Ok(())
            }
            Err(error) => Err(self.failed("cannot write", error)),
        }
    }

    fn failed(&self, verb: &'static str, source: kube::Error) -> Error {
        Error::Request {
            verb,
            secret: self.to_string(),
            source: Box::new(source),
        }
    }
}

impl fmt::Display for SecretStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the Secret {}/{}", self.namespace, self.name)
    }
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    let text = String::from_utf8(bytes.clone()).ok()?;
    (!text.is_empty()).then_some(text)
}

/// The certificates in a Secret; none if no operator has written them.
fn read_keys(secret: &Secret) -> Option<CertificateSet> {
    let annotations = secret.annotations();
    let time = |key| annotations.get(key)?.parse::<Timestamp>().ok();
    let pair = |certificate, key| {
        Some(CertificateKeyPair {
            certificate: text(secret, certificate)?,
            key: text(secret, key)?,
        })
    };
    Some(CertificateSet {
        authority: pair(AUTHORITY, AUTHORITY_KEY)?,
        leaf: pair(CHAIN, KEY)?,
        hosts: annotations
            .get(HOSTS)
            .map(|hosts| hosts.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        next: pair(NEXT, NEXT_KEY).zip(time(PUBLISHED)),
        previous: text(secret, PREVIOUS).zip(time(RETIRED)),
        revision: annotations
            .get(REVISION)
            .and_then(|revision| revision.parse().ok())
            .unwrap_or_default(),
    })
}

fn put_keys(secret: &mut Secret, keys: &CertificateSet) {
    let bundle = keys.bundle();
    let mut data: BTreeMap<&str, &str> = BTreeMap::from([
        (CHAIN, keys.leaf.certificate.as_str()),
        (KEY, keys.leaf.key.as_str()),
        (BUNDLE, bundle.as_str()),
        (AUTHORITY, keys.authority.certificate.as_str()),
        (AUTHORITY_KEY, keys.authority.key.as_str()),
    ]);
    let annotations = secret.metadata.annotations.get_or_insert_default();
    annotations.insert(HOSTS.to_owned(), keys.hosts.join(","));
    annotations.insert(REVISION.to_owned(), keys.revision.to_string());
    annotations.remove(PUBLISHED);
    annotations.remove(RETIRED);
    if let Some((next, published)) = &keys.next {
        data.insert(NEXT, &next.certificate);
        data.insert(NEXT_KEY, &next.key);
        annotations.insert(PUBLISHED.to_owned(), published.to_string());
    }
    if let Some((previous, retired)) = &keys.previous {
        data.insert(PREVIOUS, previous);
        annotations.insert(RETIRED.to_owned(), retired.to_string());
    }
    let data = data
        .into_iter()
        .map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec())));
    secret.data = Some(data.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_the_same_after_writing_and_reading_a_secret() {
        let hosts = ["a.b.svc".to_owned(), "a.b".to_owned()];
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let policy = RotationPolicy::default();
        let mut keys = None;
        for step in [
            rotation::RotationStep::Create,
            rotation::RotationStep::Publish,
            rotation::RotationStep::Switch,
            rotation::RotationStep::Publish,
        ] {
            let (made, _) = advance(keys, step, &hosts, &policy, now).unwrap();
            let mut secret = Secret::default();
            put_keys(&mut secret, &made);
            assert_eq!(read_keys(&secret).as_ref(), Some(&made));
            keys = Some(made);
        }
        assert_eq!(read_keys(&Secret::default()), None);
    }
}
