//! Credentials for a cluster, as login handlers return them.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Uri;
use http::header::{AUTHORIZATION, HeaderValue};
use jiff::Timestamp;
use kube::Config;
use serde_json::{Map, Value};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};

use super::login_error::LoginError;
use crate::handler::error::HandlerError;

/// The result of a login handler: credentials, or `None` if it has none.
pub type LoginResult = Result<Option<Credentials>, HandlerError>;

/// The keys of a kubeconfig that name files with the authentication of the user.
const FILES: [&str; 3] = ["tokenFile", "client-certificate", "client-key"];

/// The keys of a kubeconfig for plugins that make tokens or certificates.
const PLUGINS: [&str; 2] = ["exec", "auth-provider"];

/// The number of times that credentials are tried which another program may renew at any moment.
const TRIES_OF_RENEWED: u32 = 3;

/// The address of a cluster, its certificate authorities, and the user's authentication.
///
/// The operator uses the credentials with the highest priority first. It does not use credentials
/// again that the API server has rejected, or that have expired. Credentials that another program
/// renews, such as those of a kubeconfig, a file or a plugin, get three tries.
#[derive(Clone)]
pub struct Credentials {
    config: Config,
    /// The authentication of the user, with the keys of a kubeconfig.
    user: Map<String, Value>,
    /// The scheme of the `Authorization` header, if it is not `Bearer`.
    scheme: Option<String>,
    priority: i64,
    expiration: Option<Timestamp>,
    /// Whether they come from where the default login looks for them.
    inferred: bool,
}

/// The authentication of a user cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidCredentials {
    #[error("the user is invalid: {0}")]
    User(#[from] serde_json::Error),
    #[error("the token or its scheme has characters that a header cannot have")]
    Header,
}

impl Credentials {
    /// Credentials without a user, for the API server at this address.
    #[must_use]
    pub fn new(server: Uri) -> Self {
        Self::from(Config::new(server))
    }

    /// The credentials of a kubeconfig or of the pod's service account, as without login handlers.
    ///
    /// # Errors
    /// A permanent error if there is neither.
    pub async fn infer() -> LoginResult {
        match Config::infer().await {
            Ok(config) => Ok(Some(Self {
                inferred: true,
                ..Self::from(config)
            })),
            Err(error) => Err(HandlerError::permanent(format!(
                "no cluster to connect to: {}",
                LoginError::describe(&error)
            ))),
        }
    }

    /// Authenticates by a bearer token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        self.with_user("token", token.into())
    }

    /// Sends the token with another scheme than `Bearer`, which a proxy before the API server may
    /// want; without a token, this is the whole `Authorization` header.
    #[must_use]
    pub fn scheme(mut self, scheme: impl Into<String>) -> Self {
        self.scheme = Some(scheme.into());
        self
    }

    /// Authenticates by a user name and a password.
    #[must_use]
    pub fn basic(self, username: impl Into<String>, password: impl Into<String>) -> Self {
        self.with_user("username", username.into())
            .with_user("password", password.into())
    }

    /// Authenticates by a client certificate and its key, both in PEM.
    #[must_use]
    pub fn client_certificate(self, certificate: &[u8], key: &[u8]) -> Self {
        self.with_user("client-certificate-data", BASE64.encode(certificate))
            .with_user("client-key-data", BASE64.encode(key))
    }

    /// Trusts API servers whose certificates come from these authorities, in PEM.
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

    /// Accepts any certificate of the API server.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.config.accept_invalid_certs = true;
        self
    }

    /// Sets the default namespace of the client.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.config.default_namespace = namespace.into();
        self
    }

    /// Sets the priority: the highest is used first, and 0 is the default.
    #[must_use]
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the time at which they expire.
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

    /// The number of rejections after which they are not tried again.
    pub(crate) fn tries(&self) -> u32 {
        let mut renewed = FILES.iter().chain(&PLUGINS);
        if self.inferred || renewed.any(|key| self.user.contains_key(*key)) {
            TRIES_OF_RENEWED
        } else {
            1
        }
    }

    /// A value that is equal for the same server and user, whatever the priority and expiration.
    /// Files count by what is in them.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.config.cluster_url.hash(&mut hasher);
        self.config.root_cert.hash(&mut hasher);
        self.scheme.hash(&mut hasher);
        Value::Object(self.user.clone())
            .to_string()
            .hash(&mut hasher);
        let files = FILES.iter().filter_map(|key| self.user.get(*key)?.as_str());
        for file in files {
            // A file that cannot be read is reported when the client is made.
            std::fs::read(file).ok().hash(&mut hasher);
        }
        hasher.finish()
    }

    /// # Errors
    /// If the authentication of the user cannot be used.
    pub(crate) fn into_config(mut self) -> Result<Config, InvalidCredentials> {
        let mut config = self.config;
        if let Some(scheme) = self.scheme {
            let text = match self.user.remove("token") {
                Some(Value::String(token)) => format!("{scheme} {token}"),
                _ => scheme,
            };
            let header = HeaderValue::try_from(text);
            let mut header = header.map_err(|_| InvalidCredentials::Header)?;
            header.set_sensitive(true);
            config.headers.push((AUTHORIZATION, header));
        }
        config.auth_info = serde_json::from_value(Value::Object(self.user))?;
        // Each caller in this crate decides how long to retry, and when not to.
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
            scheme: None,
            priority: 0,
            expiration: None,
            inferred: false,
        }
    }
}

/// Leaves out all secrets.
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
    fn the_fingerprint_ignores_priority_and_expiration() {
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
    fn secrets_reach_the_client_and_not_the_log() {
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

    #[test]
    fn the_fingerprint_changes_with_the_content_of_files() {
        let path = std::env::temp_dir().join(format!("kopf-token-{}", std::process::id()));
        let with_file = || server().with_user("tokenFile", path.display().to_string());
        std::fs::write(&path, "one").unwrap();
        let one = with_file().fingerprint();
        assert_eq!(with_file().fingerprint(), one);
        std::fs::write(&path, "two").unwrap();
        assert_ne!(with_file().fingerprint(), one);
        std::fs::remove_file(&path).unwrap();
        assert_eq!((with_file().tries(), server().token("one").tries()), (3, 1));
    }

    #[test]
    fn the_scheme_of_a_token_is_that_of_the_header() {
        let header = |credentials: Credentials| {
            let config = credentials.into_config().unwrap();
            let user = serde_json::to_value(&config.auth_info).unwrap();
            assert_eq!(user["token"], Value::Null);
            assert!(config.headers[0].1.is_sensitive());
            config.headers[0].1.to_str().unwrap().to_owned()
        };
        assert_eq!(header(server().token("abc").scheme("Token")), "Token abc");
        assert_eq!(header(server().scheme("Negotiate")), "Negotiate");
        assert!(server().scheme("a\nb").into_config().is_err());
        assert_ne!(
            server().token("abc").scheme("Token").fingerprint(),
            server().token("abc").fingerprint()
        );
    }
}
