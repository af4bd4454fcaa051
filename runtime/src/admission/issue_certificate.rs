//! Makes certificate authorities and the server certificates that they sign.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate with its private key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CertificateKeyPair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// How long before now a new certificate begins, as clocks differ; at most a tenth of its lifetime.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// Makes a self-signed authority.
pub(super) fn authority(
    now: Timestamp,
    lifetime: Duration,
) -> Result<CertificateKeyPair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = authority_params();
    limit(&mut params, now, lifetime);
    Ok(CertificateKeyPair {
        certificate: params.self_signed(&key)?.pem(),
        key: key.serialize_pem(),
    })
}

/// Makes a certificate for a server with these names and addresses.
pub(super) fn leaf(
    authority: &CertificateKeyPair,
    hosts: &[String],
    now: Timestamp,
    lifetime: Duration,
) -> Result<CertificateKeyPair, rcgen::Error> {
    let issuer = Issuer::new(authority_params(), KeyPair::from_pem(&authority.key)?);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(hosts)?;
    let name = hosts.first().map_or("webhooks", String::as_str);
    // A common name has 64 characters at most; clients check the alternative names instead.
    let name: String = name.chars().take(64).collect();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    limit(&mut params, now, lifetime);
    Ok(CertificateKeyPair {
        certificate: params.signed_by(&key, &issuer)?.pem(),
        key: key.serialize_pem(),
    })
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    let name = "kopf-gen webhook authority";
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn limit(params: &mut CertificateParams, now: Timestamp, lifetime: Duration) {
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(CLOCK_SKEW.min(lifetime / 10));
    params.not_after = epoch + now + lifetime;
}

impl std::fmt::Debug for CertificateKeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateKeyPair")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use kopf_core::admission::certificate::Certificate;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn a_server_certificate_names_its_authority_and_its_validity() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let day = Duration::from_secs(24 * 3600);
        let authority = authority(now, day * 2).unwrap();
        let leaf = leaf(&authority, &["localhost".to_owned()], now, day).unwrap();
        let parsed = |pair: &CertificateKeyPair| {
            let der = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
            Certificate::from_der(&der).unwrap()
        };
        let (authority, leaf) = (parsed(&authority), parsed(&leaf));
        assert_eq!(leaf.issuer, authority.subject);
        assert_eq!(leaf.subject.common_name(), Some("localhost"));
        assert_eq!(leaf.not_after.as_second(), 1_800_000_000 + 24 * 3600);
        assert_eq!(leaf.not_before.as_second(), 1_800_000_000 - 300);
    }
}
