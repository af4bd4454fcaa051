//! GET requests with ranges, bounded redirects and time limits.
//!
//! The client is `ureq`: the callers block, and it brings proxies, timeouts per read and the trust
//! store of the system, in three small crates beside those that kube already needs.

use std::io::Read;
use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode, Uri, header};
use tokio_rustls::rustls::crypto::ring;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use super::{DownloadLimits, Error};

/// dl.k8s.io and GitHub redirect once or twice.
const REDIRECTS: u32 = 5;

/// Sends requests.
pub(super) struct HttpClient {
    agent: Agent,
    limits: DownloadLimits,
}

/// The body of a file, or of the rest of it.
pub(super) struct FileBody {
    /// The position in the file at which the body begins.
    pub(super) offset: u64,
    /// The size of the whole file, if the server says it.
    pub(super) total: Option<u64>,
    pub(super) reader: Box<dyn Read>,
}

/// The answer to a request for a file from an offset on.
pub(super) enum FileAnswer {
    Body(FileBody),
    /// The file has no bytes at this offset.
    BeyondEnd,
}

// === impl HttpClient ===

impl HttpClient {
    pub(super) fn new(limits: DownloadLimits) -> Self {
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .user_agent(concat!("kopf-gen/", env!("CARGO_PKG_VERSION")))
            // The status and the redirects are checked here.
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(limits.response))
            .timeout_recv_response(Some(limits.response))
            .timeout_per_read(Some(limits.silence))
            .build();
        Self {
            agent: config.into(),
            limits,
        }
    }

    /// The text at `url`, of at most `largest` bytes.
    pub(super) fn text(&self, url: &str, largest: u64) -> Result<String, Error> {
        let mut response = self.get(url, 0)?;
        check_status(url, response.status())?;
        let body = response.body_mut().with_config().limit(largest);
        body.read_to_string().map_err(|source| Error::Connection {
            url: url.to_owned(),
            source: Box::new(source),
        })
    }

    /// The file at `url` from this offset on, or from its beginning if the server has no ranges.
    pub(super) fn file(&self, url: &str, offset: u64) -> Result<FileAnswer, Error> {
        let response = self.get(url, offset)?;
        if response.status() == StatusCode::RANGE_NOT_SATISFIABLE && offset > 0 {
            return Ok(FileAnswer::BeyondEnd);
        }
        check_status(url, response.status())?;
        let (offset, total) = if response.status() == StatusCode::PARTIAL_CONTENT {
            content_range(response.headers()).ok_or_else(|| Error::Url {
                url: url.to_owned(),
                reason: "the server sends a part of the file and does not say which",
            })?
        } else {
            (0, content_length(response.headers()))
        };
        if total.is_some_and(|total| total > self.limits.largest_file) {
            return Err(Error::TooLarge {
                url: url.to_owned(),
                limit: self.limits.largest_file,
            });
        }
        let reader = response.into_body().into_reader();
        Ok(FileAnswer::Body(FileBody {
            offset,
            total,
            reader: Box::new(reader),
        }))
    }

    /// Follows redirects to the final response.
    fn get(&self, url: &str, offset: u64) -> Result<Response<Body>, Error> {
        let mut current = allowed(url, None)?;
        for _ in 0..=REDIRECTS {
            let response = self.get_once(&current, offset)?;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            if !is_redirect {
                return Ok(response);
            }
            let location = response.headers().get(header::LOCATION);
            let location = location.and_then(|it| it.to_str().ok()).unwrap_or_default();
            current = redirected(&current, location)?;
        }
        Err(Error::Redirects {
            url: url.to_owned(),
            limit: REDIRECTS,
        })
    }

    fn get_once(&self, url: &Uri, offset: u64) -> Result<Response<Body>, Error> {
        let mut request = self.agent.get(url.clone());
        if offset > 0 {
            request = request.header(header::RANGE, format!("bytes={offset}-"));
        }
        if is_loopback(url) {
            // No proxy can reach this machine's own servers.
            request = request.config().proxy(None).build();
        }
        request.call().map_err(|source| Error::Connection {
            url: url.to_string(),
            source: Box::new(source),
        })
    }
}

fn check_status(url: &str, status: StatusCode) -> Result<(), Error> {
    if matches!(status.as_u16(), 200 | 206) {
        return Ok(());
    }
    Err(Error::Status {
        url: url.to_owned(),
        status: status.as_u16(),
    })
}

/// Parses an address that may be used: one with TLS, or one on this machine unless a server
/// elsewhere redirects to it.
fn allowed(url: &str, redirected_from: Option<&Uri>) -> Result<Uri, Error> {
    let refused = |reason| Error::Url {
        url: url.to_owned(),
        reason,
    };
    let parsed: Uri = url.parse().map_err(|_| refused("this is no address"))?;
    let from_here = redirected_from.is_none_or(is_loopback);
    match parsed.scheme_str() {
        _ if parsed.host().is_none_or(str::is_empty) => Err(refused("this is no address")),
        Some("https") => Ok(parsed),
        Some("http") if is_loopback(&parsed) && from_here => Ok(parsed),
        _ => Err(refused("only https is allowed, and http on this machine")),
    }
}

fn redirected(from: &Uri, location: &str) -> Result<Uri, Error> {
    if location.starts_with('/') && !location.starts_with("//") {
        let (scheme, authority) = (from.scheme_str(), from.authority());
        let base = scheme.zip(authority);
        let absolute = base.map(|(scheme, host)| format!("{scheme}://{host}{location}"));
        return allowed(&absolute.unwrap_or_default(), Some(from));
    }
    allowed(location, Some(from))
}

fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|it| it.is_loopback())
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// The first position and the whole size in `bytes 100-199/200`; the size may be `*`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (positions, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = positions.split_once('-')?;
    Some((first.parse().ok()?, total.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tls_and_this_machine_are_allowed() {
        for url in [
            "https://dl.k8s.io/x",
            "http://127.0.0.1:1/x",
            "http://[::1]:1/x",
            "http://localhost/x",
        ] {
            assert!(allowed(url, None).is_ok(), "{url}");
        }
        for url in [
            "http://dl.k8s.io/x",
            "ftp://127.0.0.1/x",
            "/x",
            "",
            "http://127.0.0.1.example.com/",
        ] {
            assert!(allowed(url, None).is_err(), "{url}");
        }
    }

    #[test]
    fn a_redirect_never_leads_from_tls_to_plain_text_or_into_this_machine() {
        let from: Uri = "https://dl.k8s.io/a/b".parse().expect("an address");
        for location in [
            "http://dl.k8s.io/x",
            "http://127.0.0.1/x",
            "//other/x",
            "",
            "relative",
        ] {
            assert!(redirected(&from, location).is_err(), "{location}");
        }
        let absolute = redirected(&from, "https://cdn.dl.k8s.io/x").expect("allowed");
        assert_eq!(absolute.to_string(), "https://cdn.dl.k8s.io/x");
        let same_host = redirected(&from, "/x?y").expect("allowed");
        assert_eq!(same_host.to_string(), "https://dl.k8s.io/x?y");
    }
}
