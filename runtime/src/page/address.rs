//! The address of the page, `http://host:port`, and the names under which it may be opened.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use http::Uri;

/// Where an operator serves its page: an address on this machine, unless hosts are named.
///
/// ```
/// use kopf_runtime::PageSetup;
///
/// let page: PageSetup = "http://127.0.0.1:8090".parse()?;
/// assert_eq!(page.to_string(), "http://127.0.0.1:8090");
/// # Ok::<(), kopf_runtime::InvalidPageAddress>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct PageSetup {
    host: String,
    port: u16,
    hosts: Vec<String>,
    edits: bool,
}

/// An invalid address of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address of a page: write it as http://127.0.0.1:port")]
pub struct InvalidPageAddress(String);

impl PageSetup {
    /// Lets the page be opened under one more host name, such as that of a proxy, and lets it listen
    /// on any address. All who reach the address can read the page: it has no login.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Lets the page retry, change and delete objects with the permissions of the operator, for all
    /// who know the token in the address that the operator logs. For development.
    pub fn edits(mut self) -> Self {
        self.edits = true;
        self
    }

    pub(super) fn has_edits(&self) -> bool {
        self.edits
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    pub(super) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((&*self.host, self.port).to_socket_addrs()?.collect())
    }
}

impl FromStr for PageSetup {
    type Err = InvalidPageAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidPageAddress(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let authority = uri.authority().ok_or_else(invalid)?;
        let is_plain = uri.scheme_str() == Some("http")
            && ["", "/"].contains(&uri.path())
            && uri.query().is_none()
            && !authority.as_str().contains('@');
        let port = authority.port_u16().filter(|_| is_plain);
        let port = port.ok_or_else(invalid)?;
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        Ok(Self {
            host: bare.unwrap_or(host).to_owned(),
            port,
            hosts: Vec::new(),
            edits: false,
        })
    }
}

impl fmt::Display for PageSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            write!(f, "http://[{host}]:{port}")
        } else {
            write!(f, "http://{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port_and_nothing_else() {
        for (text, shown) in [
            ("http://127.0.0.1:8090", "http://127.0.0.1:8090"),
            ("http://localhost:0/", "http://localhost:0"),
            ("http://[::1]:9", "http://[::1]:9"),
        ] {
            assert_eq!(text.parse::<PageSetup>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "127.0.0.1:8090",
            "https://127.0.0.1:8090",
            "http://127.0.0.1",
            "http://127.0.0.1:8090/page",
            "http://127.0.0.1:8090/?a=b",
            "http://me@127.0.0.1:8090",
            "http://127.0.0.1:80900",
        ] {
            let invalid = InvalidPageAddress(text.to_owned());
            assert_eq!(text.parse::<PageSetup>(), Err(invalid));
        }
    }
}
