//! Certificates and keys as rustls wants them.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig, crypto};

use super::server::ClientVerification;

/// What a server shows, and whom its clients have to trust.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServingCertificate {
    /// The certificate and what leads to its authority, as PEM.
    pub(super) chain: String,
    /// The private key, as PEM.
    pub(super) key: String,
    /// The authorities, as PEM; none if everybody trusts them anyway.
    pub(super) bundle: Option<String>,
    /// For certificates that replicas share: grows with each change.
    pub(super) revision: Option<u64>,
}

/// Why certificates cannot be served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{0} holds no certificate that can be read")]
    Certificate(String, #[source] pem::Error),
    #[error("{0} holds no private key that can be read")]
    Key(String, #[source] pem::Error),
    #[error(
        "the private key in {0} is encrypted, which is not supported: decrypt it with `openssl pkey -in {0}`"
    )]
    Encrypted(String),
    #[error("the certificate and the key do not make a server")]
    Unusable(#[source] rustls::Error),
    #[error("the authority of clients cannot be used")]
    ClientAuthority(#[source] VerifierBuilderError),
}

/// Where certificate and key come from, for messages.
#[derive(Clone, Debug)]
pub(super) struct CertificateOrigin {
    pub(super) chain: String,
    pub(super) key: String,
}

/// A server with these certificates, which may ask its clients for theirs.
pub(super) fn server_config(
    material: &ServingCertificate,
    origin: &CertificateOrigin,
    clients: Option<(&ClientVerification, &str)>,
) -> Result<ServerConfig, Error> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(Error::Unusable)?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some((verification, authority)) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(authority, &verification.describe())? {
                roots.add(certificate).map_err(Error::Unusable)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match verification {
                ClientVerification::Required { .. } => verifier,
                ClientVerification::Optional { .. } => verifier.allow_unauthenticated(),
            };
            builder.with_client_cert_verifier(verifier.build().map_err(Error::ClientAuthority)?)
        }
    };
    let chain = certificates(&material.chain, &origin.chain)?;
    let key = private_key(&material.key, &origin.key)?;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(Error::Unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificates in a text, at least one.
pub(super) fn certificates(pem: &str, origin: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(Error::Certificate(
            origin.to_owned(),
            pem::Error::NoItemsFound,
        )),
        Err(error) => Err(Error::Certificate(origin.to_owned(), error)),
    }
}

fn private_key(pem: &str, origin: &str) -> Result<PrivateKeyDer<'static>, Error> {
    if pem.contains("BEGIN ENCRYPTED PRIVATE KEY") || pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(Error::Encrypted(origin.to_owned()));
    }
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| Error::Key(origin.to_owned(), error))
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServingCertificate").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> CertificateOrigin {
        CertificateOrigin {
            chain: "tls.crt".to_owned(),
            key: "tls.key".to_owned(),
        }
    }

    #[test]
    fn encrypted_keys_are_refused_with_the_way_out() {
        let pem =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----";
        let error = private_key(pem, "tls.key").unwrap_err().to_string();
        assert!(error.contains("openssl pkey -in tls.key"), "{error}");
    }

    #[test]
    fn a_text_without_certificates_is_named() {
        let material = ServingCertificate {
            chain: "nothing".to_owned(),
            key: String::new(),
            bundle: None,
            revision: None,
        };
        let error = server_config(&material, &origin(), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tls.crt holds no certificate that can be read"
        );
    }
}
