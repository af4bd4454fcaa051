//! Kubernetes versions, and the releases whose Go modules are pinned in this crate.

use std::fmt;
use std::str::FromStr;

use super::{Error, fingerprint};

/// A full version of Kubernetes, such as `v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

/// One Kubernetes release whose Go modules are pinned.
#[derive(Clone, Debug)]
pub(crate) struct PinnedRelease {
    pub(super) version: KubernetesVersion,
    /// The version of etcd, such as `v3.6.1`.
    pub(super) etcd: &'static str,
    /// The texts of `go.mod` and `go.sum`.
    pub(super) requirements: &'static str,
    pub(super) sums: &'static str,
    /// A hash of all pinned modules.
    pub(super) fingerprint: String,
}

/// The Kubernetes minors that can be built.
pub const PINNED_MINORS: [&str; 2] = ["1.35", "1.36"];

/// The text is not a version.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a Kubernetes version, such as v1.36.3")]
pub struct NoVersion(String);

// === impl PinnedRelease ===

impl PinnedRelease {
    pub(crate) fn of(minor: &str) -> Result<Self, Error> {
        let (requirements, sums) = match minor {
            "1.35" => (
                include_str!("../../kubernetes/1.35/go.mod"),
                include_str!("../../kubernetes/1.35/go.sum"),
            ),
            "1.36" => (
                include_str!("../../kubernetes/1.36/go.mod"),
                include_str!("../../kubernetes/1.36/go.sum"),
            ),
            _ => {
                return Err(Error::UnknownKubernetes {
                    requested: minor.to_owned(),
                    known: PINNED_MINORS.map(str::to_owned).to_vec(),
                });
            }
        };
        Ok(Self {
            version: required(requirements, "k8s.io/kubernetes")
                .and_then(|version| version.parse().ok())
                .expect("each pinned module requires a release of Kubernetes"),
            etcd: required(requirements, "go.etcd.io/etcd/server/v3")
                .expect("each pinned module requires etcd"),
            requirements,
            sums,
            fingerprint: fingerprint([requirements.as_bytes(), sums.as_bytes()]),
        })
    }
}

/// The required version of a Go module.
fn required<'a>(requirements: &'a str, module: &str) -> Option<&'a str> {
    requirements.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ");
        let version = line.strip_prefix(module)?.strip_prefix(' ')?;
        version.split_whitespace().next()
    })
}

// === impl KubernetesVersion ===

impl KubernetesVersion {
    /// Whether this is a release of a minor such as `1.36`.
    pub fn is_of(self, minor: &str) -> bool {
        minor.trim_start_matches('v') == format!("{}.{}", self.major, self.minor)
    }

    /// The minor as a number that orders releases.
    pub(crate) fn minor_number(self) -> (u16, u16) {
        (self.major, self.minor)
    }

    /// Whether a controller manager of this version works with that API server: the same minor, or
    /// the one before.
    pub(crate) fn can_manage(self, server: Self) -> bool {
        self.major == server.major && (self.minor == server.minor || self.minor + 1 == server.minor)
    }
}

impl FromStr for KubernetesVersion {
    type Err = NoVersion;

    /// Parses `1.36.3` and `v1.36.3`, also with a suffix such as `-rc.1`.
    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let parse = || {
            let plain = text.strip_prefix('v').unwrap_or(text);
            let plain = plain.split(['-', '+']).next()?;
            let mut parts = plain.splitn(3, '.').map(|part| part.parse::<u16>().ok());
            Some(Self {
                major: parts.next()??,
                minor: parts.next()??,
                patch: parts.next()??,
            })
        };
        parse().ok_or_else(|| NoVersion(text.to_owned()))
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}
