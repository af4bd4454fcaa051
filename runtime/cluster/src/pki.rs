//! The certificates of a control plane: a certificate authority, and server and client certificates.

use std::path::Path;
use std::{fs, io};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// A certificate and its key, both as PEM.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// The reasons why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key or certificate could not be made.
    #[error("make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The authority's files could not be read or written.
    #[error("read or write the certificate authority")]
    File(#[from] io::Error),
}

// === impl Authority ===

impl Authority {
    /// Makes a new authority and writes it to `folder`.
    pub(crate) fn create_in(folder: &Path) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let certificate = authority_params().self_signed(&key)?.pem();
        fs::write(folder.join("ca.pem"), &certificate)?;
        fs::write(folder.join("ca.key"), key.serialize_pem())?;
        Ok(Self {
            issuer: Issuer::new(authority_params(), key),
            certificate,
        })
    }

    /// Reads the authority that [`Authority::create_in`] wrote.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let key = KeyPair::from_pem(&fs::read_to_string(folder.join("ca.key"))?)?;
        let certificate = fs::read_to_string(folder.join("ca.pem"))?;
        Ok(Self {
            issuer: Issuer::new(authority_params(), key),
            certificate,
        })
    }

    /// A new authority, which no control plane trusts, for a test's own server.
    pub fn fresh() -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let certificate = authority_params().self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(authority_params(), key),
            certificate,
        })
    }

    /// The authority's own certificate as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A new authority of this name, which no control plane trusts.
    pub fn named(name: &str) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = authority_params();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// Signs a server certificate for the loopback addresses.
    pub fn loopback_server(&self) -> Result<Certified, Error> {
        self.server(&LOOPBACK)
    }

    /// Signs a server certificate for the loopback addresses that has expired.
    pub fn expired_loopback_server(&self) -> Result<Certified, Error> {
        let mut params = server_params(&LOOPBACK)?;
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        self.sign(&params)
    }

    /// Signs a certificate for the loopback addresses that servers and clients present: members of
    /// etcd are both.
    pub(crate) fn loopback_peer(&self) -> Result<Certified, Error> {
        let mut params = server_params(&LOOPBACK)?;
        params
            .extended_key_usages
            .push(ExtendedKeyUsagePurpose::ClientAuth);
        self.sign(&params)
    }

    /// Signs a server certificate for these names and addresses; the first is the common name.
    pub fn server(&self, names: &[&str]) -> Result<Certified, Error> {
        self.sign(&server_params(names)?)
    }

    /// Signs a client certificate: the common name is the user, the organization a group.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Certified, Error> {
        let mut params = CertificateParams::default();
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, user);
        if let Some(group) = group {
            name.push(DnType::OrganizationName, group);
        }
        params.distinguished_name = name;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Certified, Error> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Certified {
            certificate,
            key: key.serialize_pem(),
        })
    }
}

/// A server certificate that is its own authority.
pub fn self_signed_server(names: &[&str]) -> Result<Certified, Error> {
    let key = KeyPair::generate()?;
    Ok(Certified {
        certificate: server_params(names)?.self_signed(&key)?.pem(),
        key: key.serialize_pem(),
    })
}

fn server_params(names: &[&str]) -> Result<CertificateParams, Error> {
    let all: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(all)?;
    params.distinguished_name = DistinguishedName::new();
    if let Some(first) = names.first() {
        params.distinguished_name.push(DnType::CommonName, *first);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "kopf-cluster authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

/// Writes the pair of keys with which service account tokens are signed and checked.
pub(crate) fn write_token_keys(private: &Path, public: &Path) -> Result<(), Error> {
    let key = KeyPair::generate()?;
    fs::write(private, key.serialize_pem())?;
    fs::write(public, key.public_key_pem())?;
    Ok(())
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}
