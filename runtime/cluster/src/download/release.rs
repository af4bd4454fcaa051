//! Where the files of a release are, and what their checksums are called.

use std::env;
use std::fmt;

use super::Error;

/// Overrides the base address of Kubernetes releases, for a mirror; `none` forbids downloads.
const KUBERNETES_VARIABLE: &str = "KOPF_CLUSTER_KUBERNETES_MIRROR";

/// Overrides the base address of etcd releases, for a mirror.
const ETCD_VARIABLE: &str = "KOPF_CLUSTER_ETCD_MIRROR";

/// A binary that is part of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseBinary {
    /// The etcd server.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The controller manager.
    KubeControllerManager,
    /// The command-line client.
    Kubectl,
}

/// An operating system and a processor, as Kubernetes and etcd name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// `linux` or `darwin`.
    pub system: String,
    /// `amd64`, `arm64` and others.
    pub processor: String,
}

/// The base addresses of releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrors {
    /// The folder with one folder per version of Kubernetes.
    pub kubernetes: String,
    /// The folder with one folder per version of etcd.
    pub etcd: String,
}

/// The file of a release that holds a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReleaseFile {
    /// The last part of the address.
    pub(super) name: String,
    pub(super) url: String,
    pub(super) checksum_url: String,
    pub(super) packaging: Packaging,
}

/// How a file of a release holds the binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packaging {
    /// The file is the binary.
    Plain,
    /// The file is an archive with the binary under this path.
    TarGz { entry: String },
}

// === impl ReleaseBinary ===

impl ReleaseBinary {
    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
        }
    }
}

impl fmt::Display for ReleaseBinary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Platform ===

impl Platform {
    /// The platform of this machine.
    pub fn of_this_machine() -> Self {
        let system = match env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        let processor = match env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            system: system.to_owned(),
            processor: processor.to_owned(),
        }
    }

    /// Whether the projects publish this binary for this platform.
    pub fn has(&self, binary: ReleaseBinary) -> bool {
        let is_common = matches!(self.processor.as_str(), "amd64" | "arm64");
        match self.system.as_str() {
            "linux" => is_common,
            // There is an etcd too, but without an API server it is of no use.
            "darwin" => is_common && binary == ReleaseBinary::Kubectl,
            _ => false,
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.system, self.processor)
    }
}

// === impl Mirrors ===

impl Mirrors {
    /// The addresses of the projects themselves.
    pub fn official() -> Self {
        Self {
            kubernetes: "https://dl.k8s.io/release".to_owned(),
            etcd: "https://github.com/etcd-io/etcd/releases/download".to_owned(),
        }
    }

    /// The addresses that the variables `KOPF_CLUSTER_KUBERNETES_MIRROR` and
    /// `KOPF_CLUSTER_ETCD_MIRROR` of this process name, otherwise the official ones; none if one of
    /// them is `none`.
    pub fn from_process() -> Option<Self> {
        let official = Self::official();
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let mirrors = Self {
            kubernetes: variable(KUBERNETES_VARIABLE).unwrap_or(official.kubernetes),
            etcd: variable(ETCD_VARIABLE).unwrap_or(official.etcd),
        };
        let is_off = mirrors.kubernetes == "none" || mirrors.etcd == "none";
        (!is_off).then_some(mirrors)
    }
}

// === impl ReleaseFile ===

impl ReleaseFile {
    pub(super) fn of(
        binary: ReleaseBinary,
        version: &str,
        platform: &Platform,
        mirrors: &Mirrors,
    ) -> Result<Self, Error> {
        if !is_version(version) {
            return Err(Error::Version(version.to_owned()));
        }
        if !platform.has(binary) {
            return Err(Error::Unpublished {
                binary,
                platform: platform.clone(),
            });
        }
        let Platform { system, processor } = platform;
        Ok(match binary {
            ReleaseBinary::Etcd => {
                let stem = format!("etcd-{version}-{system}-{processor}");
                let base = format!("{}/{version}", mirrors.etcd.trim_end_matches('/'));
                let name = format!("{stem}.tar.gz");
                Self {
                    url: format!("{base}/{name}"),
                    checksum_url: format!("{base}/SHA256SUMS"),
                    packaging: Packaging::TarGz {
                        entry: format!("{stem}/etcd"),
                    },
                    name,
                }
            }
            _ => {
                let base = mirrors.kubernetes.trim_end_matches('/');
                let name = binary.name();
                let url = format!("{base}/{version}/bin/{system}/{processor}/{name}");
                Self {
                    name: name.to_owned(),
                    checksum_url: format!("{url}.sha256"),
                    url,
                    packaging: Packaging::Plain,
                }
            }
        })
    }

    /// The sum of this file in `text`: the only word of the text, or the first word of the line
    /// that names the file.
    pub(super) fn checksum_in(&self, text: &str) -> Option<String> {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let is_sum =
            |word: &&str| word.len() == 64 && word.bytes().all(|it| it.is_ascii_hexdigit());
        let sum = lines.find_map(|line| {
            let mut words = line.split_whitespace();
            let sum = words.next().filter(is_sum)?;
            match words.next() {
                Some(name) => (name.trim_start_matches('*') == self.name).then_some(sum),
                None => Some(sum),
            }
        })?;
        Some(sum.to_ascii_lowercase())
    }
}

/// Whether the text is like `v1.36.3` or `v3.7.0-rc.1`: it becomes part of addresses and paths.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let (numbers, suffix) = rest.split_once('-').unwrap_or((rest, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric());
    text.len() <= 32
        && numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && suffix.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform(system: &str, processor: &str) -> Platform {
        Platform {
            system: system.to_owned(),
            processor: processor.to_owned(),
        }
    }

    fn file(binary: ReleaseBinary, version: &str) -> Result<ReleaseFile, Error> {
        let platform = platform("linux", "arm64");
        ReleaseFile::of(binary, version, &platform, &Mirrors::official())
    }

    #[test]
    fn the_official_addresses_are_those_of_the_projects() {
        let server = file(ReleaseBinary::KubeApiserver, "v1.36.3").expect("published");
        assert_eq!(
            server.url,
            "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kube-apiserver"
        );
        assert_eq!(server.checksum_url, format!("{}.sha256", server.url));

        let etcd = file(ReleaseBinary::Etcd, "v3.6.16").expect("published");
        assert_eq!(
            etcd.url,
            "https://github.com/etcd-io/etcd/releases/download/v3.6.16/etcd-v3.6.16-linux-arm64.tar.gz"
        );
        assert!(etcd.checksum_url.ends_with("/v3.6.16/SHA256SUMS"));
        let entry = "etcd-v3.6.16-linux-arm64/etcd".to_owned();
        assert_eq!(etcd.packaging, Packaging::TarGz { entry });
    }

    #[test]
    fn servers_are_published_for_linux_only() {
        let mac = platform("darwin", "arm64");
        assert!(mac.has(ReleaseBinary::Kubectl));
        let refused = ReleaseFile::of(
            ReleaseBinary::KubeApiserver,
            "v1.36.3",
            &mac,
            &Mirrors::official(),
        );
        let message = refused.expect_err("not published").to_string();
        assert!(
            message.contains("no official kube-apiserver for darwin/arm64"),
            "{message}"
        );
        assert!(message.contains("setup-envtest"), "{message}");
    }

    #[test]
    fn a_version_cannot_lead_elsewhere() {
        for version in [
            "",
            "1.36.3",
            "v1.36",
            "v1.36.3/../..",
            "v1.36.x",
            "v1.36.3-",
            "v1.2.3-a/b",
        ] {
            assert!(
                matches!(
                    file(ReleaseBinary::Kubectl, version),
                    Err(Error::Version(_))
                ),
                "{version}"
            );
        }
        assert!(file(ReleaseBinary::Kubectl, "v1.37.0-rc.1").is_ok());
    }

    #[test]
    fn a_checksum_is_found_alone_and_in_a_list() {
        let (one, two) = ("ab".repeat(32), "CD".repeat(32));
        let server = file(ReleaseBinary::KubeApiserver, "v1.36.3").expect("published");
        assert_eq!(server.checksum_in(&one), Some(one.clone()));
        assert_eq!(server.checksum_in("<html>not found</html>"), None);

        let etcd = file(ReleaseBinary::Etcd, "v3.6.16").expect("published");
        let list = format!(
            "{one}  etcd-v3.6.16-linux-amd64.tar.gz\n{two}  {}\n",
            etcd.name
        );
        assert_eq!(etcd.checksum_in(&list), Some(two.to_lowercase()));
        let other = format!("{one}  etcd-v3.6.16-linux-amd64.tar.gz\n");
        assert_eq!(etcd.checksum_in(&other), None);
    }
}
