//! The addresses of git repositories: git knows short forms that Cargo does not accept.

use std::path::Path;

/// The schemes that Cargo fetches from.
const SCHEMES: [&str; 5] = ["https://", "http://", "ssh://", "git://", "file://"];

/// The address for Cargo; none if it cannot fetch from there.
pub(super) fn cargo_url(remote: &str) -> Option<String> {
    let is_clean = |c: char| !c.is_control() && !c.is_whitespace();
    if remote.is_empty() || !remote.chars().all(is_clean) {
        return None;
    }
    if let Some(scheme) = SCHEMES.iter().find(|scheme| remote.starts_with(**scheme)) {
        return (remote.len() > scheme.len()).then(|| remote.to_owned());
    }
    if remote.contains("://") {
        return None;
    }
    // The form of scp: `git@host:owner/name`.
    if let Some((host, path)) = remote.split_once(':')
        && !host.contains('/')
        && host.len() > 1
    {
        return Some(format!("ssh://{host}/{}", path.trim_start_matches('/')));
    }
    let folder = Path::new(remote);
    folder.is_absolute().then(|| format!("file://{remote}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_git_become_addresses_for_cargo() {
        for (remote, url) in [
            ("https://github.com/a/b", Some("https://github.com/a/b")),
            (
                "git@github.com:a/b.git",
                Some("ssh://git@github.com/a/b.git"),
            ),
            ("/srv/git/b", Some("file:///srv/git/b")),
            ("../b", None),
            ("ext::sh -c whoami", None),
            ("https://", None),
            ("ftp://host/b", None),
            ("", None),
        ] {
            assert_eq!(cargo_url(remote).as_deref(), url, "{remote}");
        }
    }
}
