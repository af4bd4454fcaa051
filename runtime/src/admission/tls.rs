//! The rustls configuration of the webhook server, from certificates and keys in PEM.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig, crypto};

use super::authority_source::AuthoritySource;

/// The certificate of a server, and the authorities that its clients should trust.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServingCertificate {
    /// The certificate and its intermediate certificates, as PEM.
    pub(super) chain: String,
    /// The private key, as PEM.
    pub(super) key: String,
    /// The authorities, as PEM; none if clients trust them already.
    pub(super) bundle: Option<String>,
    /// Grows with each change of certificates that replicas share.
    pub(super) revision: Option<u64>,
}

/// Certificates cannot be used.
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
    #[error("rustls rejects the certificate or the key")]
    Unusable(#[source] rustls::Error),
    #[error("the certificate authority of clients cannot be used")]
    ClientAuthority(#[source] VerifierBuilderError),
}

/// The sources of certificate and key, for error messages.
#[derive(Clone, Debug)]
pub(super) struct CertificateOrigin {
    pub(super) chain: String,
    pub(super) key: String,
}

/// The verification of client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientVerification {
    /// The server verifies the certificate if the client sends one; webhooks can read it.
    Optional {
        /// The authority of clients.
        authority: AuthoritySource,
    },
    /// The server rejects clients without a verified certificate.
    Required {
        /// The authority of clients.
        authority: AuthoritySource,
    },
}

/// The configuration of a server with this certificate, which may verify client certificates.
pub(super) fn server_config(
    certificate: &ServingCertificate,
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
            for certificate in certificates(authority, &verification.authority().describe())? {
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
    let chain = certificates(&certificate.chain, &origin.chain)?;
    let key = private_key(&certificate.key, &origin.key)?;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(Error::Unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificates in a PEM text, at least one.
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

// === impl ClientVerification ===

impl ClientVerification {
    pub(super) fn authority(&self) -> &AuthoritySource {
        match self {
            Self::Optional { authority } | Self::Required { authority } => authority,
        }
    }
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
    fn an_encrypted_key_is_rejected_with_the_command_that_decrypts_it() {
        let pem =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----";
        let error = private_key(pem, "tls.key").unwrap_err().to_string();
        assert!(error.contains("openssl pkey -in tls.key"), "{error}");
    }

    #[test]
    fn the_error_names_the_source_that_has_no_certificate() {
        let certificate = ServingCertificate {
            chain: "nothing".to_owned(),
            key: String::new(),
            bundle: None,
            revision: None,
        };
        let error = server_config(&certificate, &origin(), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tls.crt holds no certificate that can be read"
        );
    }
}
