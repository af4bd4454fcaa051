//! Which requests the page answers: those of its own pages, under a name that was allowed.
//!
//! A page of another site can make a browser send requests to this machine. Its requests carry the
//! other site's `Origin` or `Sec-Fetch-Site`, or, if its name was made to resolve to this machine,
//! the other site's name as `Host`.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, Method, Request};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The names of this machine for itself.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The host names under which the page may be opened.
#[derive(Debug, Clone)]
pub(super) struct AllowedHosts {
    named: Vec<String>,
}

/// The reason for which a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("the page is not served under this host name")]
    Host,
    #[error("the request comes from a page of another site")]
    Origin,
}

// === impl AllowedHosts ===

impl AllowedHosts {
    pub(super) fn new(named: &[String]) -> Self {
        Self {
            named: named.to_vec(),
        }
    }

    /// Checks who asks.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Error> {
        let headers = request.headers();
        let host = only(headers, &HOST)?.ok_or(Error::Host)?;
        let authority: Authority = host.parse().map_err(|_| Error::Host)?;
        let others = request.uri().authority();
        if !self.allows(&authority) || others.is_some_and(|other| *other != authority) {
            return Err(Error::Host);
        }
        if let Some(origin) = only(headers, &ORIGIN)? {
            let own = ["http://", "https://"].into_iter();
            let mut own = own.filter_map(|scheme| origin.strip_prefix(scheme));
            if !own.any(|origin| origin.eq_ignore_ascii_case(host)) {
                return Err(Error::Origin);
            }
        }
        let is_foreign = match only(headers, &FETCH_SITE)? {
            None | Some("same-origin" | "none") => false,
            Some(_) => true,
        };
        // A link on another site may open the page, which that site cannot read.
        let is_link = request.method() == Method::GET
            && request.uri().path() == "/"
            && only(headers, &FETCH_MODE)? == Some("navigate");
        if is_foreign && !is_link {
            return Err(Error::Origin);
        }
        Ok(())
    }

    /// A forwarded port may be another one, so that only the name counts.
    fn allows(&self, authority: &Authority) -> bool {
        let host = authority.host().to_ascii_lowercase();
        let is_plain = !authority.as_str().contains('@');
        is_plain && (LOCAL.contains(&&*host) || self.named.contains(&host))
    }
}

/// The text of a header that may be there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Error> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Error::Host);
    }
    let text = first.map(|value| value.to_str().map_err(|_| Error::Host));
    text.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, headers: &[(&str, &str)]) -> Result<(), Error> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let hosts = AllowedHosts::new(&["ops.example.com".to_owned()]);
        hosts.check(&request.body(()).unwrap())
    }

    #[test]
    fn this_machine_and_named_hosts_are_allowed_with_any_port() {
        for host in [
            "localhost:8090",
            "127.0.0.1",
            "[::1]:1",
            "LOCALHOST:1",
            "ops.example.com",
            "Ops.Example.com:443",
        ] {
            assert_eq!(check("/", &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_name_that_was_made_to_resolve_to_this_machine_is_refused() {
        for host in [
            "evil.example",
            "localhost.evil.example:8090",
            "me@localhost",
            "127.0.0.2",
            "",
        ] {
            assert_eq!(
                check("/api/overview", &[("host", host)]),
                Err(Error::Host),
                "{host}"
            );
        }
        assert_eq!(check("/", &[]), Err(Error::Host));
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(check("/", &twice), Err(Error::Host));
        let absolute = "http://evil.example/";
        assert_eq!(check(absolute, &[("host", "localhost")]), Err(Error::Host));
    }

    #[test]
    fn pages_of_other_sites_are_refused_also_for_reads() {
        let from = |origin| {
            check(
                "/api/overview",
                &[("host", "localhost:1"), ("origin", origin)],
            )
        };
        assert_eq!(from("http://localhost:1"), Ok(()));
        for origin in [
            "http://localhost:2",
            "http://evil.example",
            "null",
            "localhost:1",
        ] {
            assert_eq!(from(origin), Err(Error::Origin), "{origin}");
        }
        let site = |path, site, mode| {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
            ];
            check(path, &headers)
        };
        assert_eq!(site("/api/overview", "same-origin", "cors"), Ok(()));
        assert_eq!(
            site("/api/overview", "cross-site", "no-cors"),
            Err(Error::Origin)
        );
        assert_eq!(
            site("/api/overview", "same-site", "no-cors"),
            Err(Error::Origin)
        );
        assert_eq!(
            site("/api/overview", "cross-site", "navigate"),
            Err(Error::Origin)
        );
        assert_eq!(site("/", "cross-site", "navigate"), Ok(()));
    }
}
