//! The address of the health endpoint: `http://host:port/path`, as on Kopf's command line.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use http::Uri;

/// The path of the readiness probe.
pub(crate) const READINESS: &str = "/readyz";

/// The path of the metrics.
pub(crate) const METRICS: &str = "/metrics";

/// The address of the health endpoint, with the path of the liveness probe.
///
/// ```
/// use kopf_runtime::HealthEndpoint;
///
/// let endpoint: HealthEndpoint = "http://0.0.0.0:8080/healthz".parse()?;
/// assert_eq!(endpoint.to_string(), "http://0.0.0.0:8080/healthz");
/// # Ok::<(), kopf_runtime::InvalidHealthEndpoint>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthEndpoint {
    host: String,
    port: u16,
    path: String,
}

/// An invalid address of a health endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHealthEndpoint {
    /// It is not an HTTP address with a host and a path.
    #[error("`{0}` is not an address: write it as http://host:port/path")]
    NotAnAddress(String),
    /// Its scheme is not `http`.
    #[error("health is served by http:// only")]
    NotHttp,
    /// Its path is that of the readiness probe or of the metrics.
    #[error("`{0}` is taken: choose another path for liveness")]
    PathTaken(String),
}

impl HealthEndpoint {
    /// The path of the liveness probe.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((&*self.host, self.port).to_socket_addrs()?.collect())
    }

    /// The endpoint as a URL with the address of the listener.
    pub(super) fn at(&self, address: SocketAddr) -> String {
        format!("http://{address}{}", self.path)
    }
}

impl FromStr for HealthEndpoint {
    type Err = InvalidHealthEndpoint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unreadable = || InvalidHealthEndpoint::NotAnAddress(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| unreadable())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(_) => return Err(InvalidHealthEndpoint::NotHttp),
            None => return Err(unreadable()),
        }
        let authority = uri.authority().ok_or_else(unreadable)?;
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") => 80,
            Some(_) => authority.port_u16().ok_or_else(unreadable)?,
            None => return Err(unreadable()),
        };
        let host = authority.host();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() || uri.query().is_some() {
            return Err(unreadable());
        }
        if [READINESS, METRICS].contains(&uri.path()) {
            return Err(InvalidHealthEndpoint::PathTaken(uri.path().to_owned()));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            path: uri.path().to_owned(),
        })
    }
}

impl fmt::Display for HealthEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, path } = self;
        if host.contains(':') {
            write!(f, "http://[{host}]:{port}{path}")
        } else {
            write!(f, "http://{host}:{port}{path}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_kopf_parses_them() {
        for (text, read) in [
            ("http://0.0.0.0:8080/healthz", "http://0.0.0.0:8080/healthz"),
            ("http://localhost:1234", "http://localhost:1234/"),
            ("http://localhost/alive", "http://localhost:80/alive"),
            ("http://[::1]:9/x", "http://[::1]:9/x"),
        ] {
            let endpoint: HealthEndpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), read);
            assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
        }
    }

    #[test]
    fn an_invalid_address_is_rejected_with_the_reason() {
        use InvalidHealthEndpoint::{NotAnAddress, NotHttp, PathTaken};
        let other = |text: &str| NotAnAddress(text.to_owned());
        for (text, error) in [
            ("https://localhost/", NotHttp),
            ("tcp://localhost:1", NotHttp),
            ("localhost:8080/healthz", other("localhost:8080/healthz")),
            ("/healthz", other("/healthz")),
            ("", other("")),
            ("http://localhost:70000/", other("http://localhost:70000/")),
            ("http://me@localhost/", other("http://me@localhost/")),
            ("http://localhost/?a=b", other("http://localhost/?a=b")),
            ("http://h/metrics", PathTaken("/metrics".to_owned())),
            ("http://h/readyz", PathTaken("/readyz".to_owned())),
        ] {
            assert_eq!(text.parse::<HealthEndpoint>(), Err(error), "{text}");
        }
    }
}
