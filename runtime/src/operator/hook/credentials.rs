//! What gives access to a cluster, as login handlers return it.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Uri;
use jiff::Timestamp;
use kube::Config;
use serde_json::{Map, Value};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};

use super::login::LoginResult;
use crate::handler::error::HandlerError;

/// Access to a cluster: where it is, how to trust it, and who is asking.
///
/// Of several credentials, those with the highest priority are used first. Those that the cluster
/// does not accept, or whose time is over, are not used again.
#[derive(Clone)]
pub struct Credentials {
    config: Config,
    /// What is known about who is asking, with the keys of a kubeconfig.
    user: Map<String, Value>,
    priority: i64,
    expiration: Option<Timestamp>,
}

impl Credentials {
    /// Nobody yet, at the cluster with this address.
    #[must_use]
    pub fn new(server: Uri) -> Self {
        Self::from(Config::new(server))
    }

    /// What a kubeconfig or the service account of a pod says, as without login handlers.
    ///
    /// # Errors
    /// If there is neither, for good.
    pub async fn infer() -> LoginResult {
        match Config::infer().await {
            Ok(config) => Ok(Some(Self::from(config))),
            Err(error) => Err(HandlerError::permanent(error.to_string())),
        }
    }

    /// Proves who is asking by a token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        self.with_user("token", token.into())
    }

    /// Proves who is asking by a name and a password.
    #[must_use]
    pub fn basic(self, username: impl Into<String>, password: impl Into<String>) -> Self {
        self.with_user("username", username.into())
            .with_user("password", password.into())
    }

    /// Proves who is asking by a certificate and its key, both in PEM.
    #[must_use]
    pub fn client_certificate(self, certificate: &[u8], key: &[u8]) -> Self {
        self.with_user("client-certificate-data", BASE64.encode(certificate))
            .with_user("client-key-data", BASE64.encode(key))
    }

    /// Trusts the cluster by these certificate authorities, in PEM.
    ///
    /// # Errors
    /// If the text is not PEM.
    pub fn certificate_authority(mut self, pem: &[u8]) -> Result<Self, pem::Error> {
        let roots = CertificateDer::pem_slice_iter(pem);
        let roots = roots
            .map(|der| Ok(der?.to_vec()))
            .collect::<Result<Vec<_>, _>>()?;
        self.config.root_cert.get_or_insert_default().extend(roots);
        Ok(self)
    }

    /// Trusts whoever answers.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.config.accept_invalid_certs = true;
        self
    }

    /// The namespace of what does not name one.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.config.default_namespace = namespace.into();
        self
    }

    /// Higher ones are used first; 0 if not given.
    #[must_use]
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// When they end.
    #[must_use]
    pub fn expires(mut self, at: Timestamp) -> Self {
        self.expiration = Some(at);
        self
    }

    pub(crate) fn rank(&self) -> i64 {
        self.priority
    }

    pub(crate) fn expiration(&self) -> Option<Timestamp> {
        self.expiration
    }

    /// The same for the same access, whatever its priority and time.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.config.cluster_url.hash(&mut hasher);
        self.config.root_cert.hash(&mut hasher);
        Value::Object(self.user.clone())
            .to_string()
            .hash(&mut hasher);
        hasher.finish()
    }

    /// # Errors
    /// If what was given about the user makes no sense.
    pub(crate) fn into_config(self) -> Result<Config, serde_json::Error> {
        let mut config = self.config;
        config.auth_info = serde_json::from_value(Value::Object(self.user))?;
        // Whoever sends a request here knows how long to try, and when not to.
        config.default_retry = false;
        Ok(config)
    }

    fn with_user(mut self, key: &str, value: String) -> Self {
        self.user.insert(key.to_owned(), value.into());
        self
    }
}

impl From<Config> for Credentials {
    fn from(config: Config) -> Self {
        let user = serde_json::to_value(&config.auth_info);
        let user = match user {
            Ok(Value::Object(user)) => user,
            _ => Map::new(),
        };
        Self {
            config,
            user,
            priority: 0,
            expiration: None,
        }
    }
}

/// Secrets stay secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("server", &self.config.cluster_url)
            .field("priority", &self.priority)
            .field("expiration", &self.expiration)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Credentials {
        Credentials::new(Uri::from_static("https://cluster.test"))
    }

    #[test]
    fn the_same_access_is_recognised_whatever_its_priority_and_time() {
        let token = server().token("one");
        let later = server()
            .token("one")
            .priority(5)
            .expires(Timestamp::UNIX_EPOCH);
        assert_eq!(token.fingerprint(), later.fingerprint());
        assert_ne!(token.fingerprint(), server().token("two").fingerprint());
        assert_ne!(
            token.fingerprint(),
            server().basic("one", "two").fingerprint()
        );
    }

    #[test]
    fn what_is_given_reaches_the_client_and_no_log() {
        let credentials = server()
            .token("secret-token")
            .client_certificate(b"certificate", b"secret-key")
            .namespace("mine");
        assert!(!format!("{credentials:?}").contains("secret"));
        let config = credentials.into_config().unwrap();
        assert_eq!(config.default_namespace, "mine");
        let user = serde_json::to_value(&config.auth_info).unwrap();
        assert_eq!(user["token"], "secret-token");
        assert_eq!(user["client-certificate-data"], "Y2VydGlmaWNhdGU=");
    }
}
