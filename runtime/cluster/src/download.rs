//! Downloads the official release files of Kubernetes and etcd, and checks their checksums.
//!
//! A file is written under the name `<name>.partial` and takes its own name only when its SHA-256
//! sum is the published one and the file is on disk: a file with its own name is complete. An
//! interrupted download goes on where it stopped. Two processes that want the same file wait for
//! each other.
//!
//! Calls block; an asynchronous caller uses a thread for blocking work.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod archive;
mod http_client;
mod release;
mod transfer;

use http_client::HttpClient;
pub use release::{Mirrors, Platform, ReleaseBinary};
use release::{Packaging, ReleaseFile};
use transfer::Transfer;

/// The largest file that is accepted; the largest published one has 140 MB.
const LARGEST_FILE: u64 = 512 << 20;

/// The largest list of checksums that is accepted.
const LARGEST_CHECKSUMS: u64 = 64 << 10;

/// Downloads binaries of releases.
pub struct Downloader<'a> {
    mirrors: Mirrors,
    platform: Platform,
    limits: DownloadLimits,
    report: Box<dyn Fn(&DownloadProgress<'_>) + 'a>,
}

/// Time limits and sizes of downloads.
#[derive(Clone, Copy, Debug)]
struct DownloadLimits {
    /// For a connection, and for the header of a response.
    response: Duration,
    /// For the next bytes of a body.
    silence: Duration,
    /// Before the second attempt; doubles with each further one.
    first_pause: Duration,
    /// The number of attempts in a row that bring (almost) nothing.
    attempts: u32,
    largest_file: u64,
}

/// A step of a download; its text is one line for the user.
#[derive(Clone, Copy, Debug)]
pub enum DownloadProgress<'a> {
    /// Another process downloads the same file.
    Waiting {
        /// The name of the file.
        file: &'a str,
    },
    /// The server sends the file.
    Started {
        /// The name of the file.
        file: &'a str,
        /// The address of the file.
        url: &'a str,
        /// The number of bytes from an earlier attempt.
        resumed_at: u64,
        /// The size of the file, if the server says it.
        total: Option<u64>,
    },
    /// More of the file has arrived; at most once per mebibyte.
    Advanced {
        /// The name of the file.
        file: &'a str,
        /// The number of bytes so far.
        done: u64,
        /// The size of the file, if the server says it.
        total: Option<u64>,
    },
    /// An attempt failed, and the next one follows.
    Retrying {
        /// The name of the file.
        file: &'a str,
        /// The failure.
        error: &'a Error,
    },
    /// The file is complete, and its checksum is right.
    Finished {
        /// The name of the file.
        file: &'a str,
        /// The size of the file.
        bytes: u64,
    },
}

/// The reasons why a file could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The projects do not publish this binary for this platform.
    #[error(
        "there is no official {binary} for {platform}: Kubernetes publishes its servers for Linux only; \
         use setup-envtest or a build with Go"
    )]
    Unpublished {
        /// The binary.
        binary: ReleaseBinary,
        /// The platform.
        platform: Platform,
    },
    /// The version is not one of a release.
    #[error("`{0}` is not the version of a release, such as v1.36.3")]
    Version(String),
    /// The address may not be used.
    #[error("{url}: {reason}")]
    Url {
        /// The address.
        url: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The server answered with an error.
    #[error("{url}: the server answered with status {status}")]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The connection failed or was silent for too long.
    #[error("{url}: the connection failed")]
    Connection {
        /// The address.
        url: String,
        /// The failure.
        source: Box<ureq::Error>,
    },
    /// The body ended early or was silent for too long.
    #[error("{url}: the connection failed after {received} bytes of the file")]
    Interrupted {
        /// The address.
        url: String,
        /// The number of bytes so far.
        received: u64,
        /// The failure.
        source: io::Error,
    },
    /// The server redirects too often.
    #[error("{url}: more than {limit} redirects")]
    Redirects {
        /// The first address.
        url: String,
        /// The accepted number of redirects.
        limit: u32,
    },
    /// The file is larger than any release file.
    #[error("{url}: the file is larger than {limit} bytes")]
    TooLarge {
        /// The address.
        url: String,
        /// The accepted size.
        limit: u64,
    },
    /// The published checksum cannot be read.
    #[error("{url}: there is no SHA-256 sum of {file}")]
    NoChecksum {
        /// The address of the checksums.
        url: String,
        /// The file whose sum is missing.
        file: String,
    },
    /// The file is not the published one. It has been removed.
    #[error(
        "{url}: the SHA-256 sum of the file is {actual}, but {expected} is published; the file is removed"
    )]
    Checksum {
        /// The address.
        url: String,
        /// The published sum.
        expected: String,
        /// The sum of what the server sent.
        actual: String,
    },
    /// The archive does not hold the binary.
    #[error("{}: {reason}", archive.display())]
    Archive {
        /// The archive.
        archive: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A local file could not be handled.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The failed operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

// === impl Downloader ===

impl<'a> Downloader<'a> {
    /// Downloads for this machine's platform; `report` gets each step.
    pub fn new(mirrors: Mirrors, report: impl Fn(&DownloadProgress<'_>) + 'a) -> Self {
        Self {
            mirrors,
            platform: Platform::of_this_machine(),
            limits: DownloadLimits::default(),
            report: Box::new(report),
        }
    }

    /// Downloads for another platform.
    pub fn for_platform(mut self, platform: Platform) -> Self {
        self.platform = platform;
        self
    }

    /// The binary of this version in `folder`, downloaded first if it is not there.
    ///
    /// The folder must be one of this version: a file that is there is taken as it is.
    pub fn fetch(
        &self,
        binary: ReleaseBinary,
        version: &str,
        folder: &Path,
    ) -> Result<PathBuf, Error> {
        let target = folder.join(binary.name());
        if target.is_file() {
            return Ok(target);
        }
        let release = ReleaseFile::of(binary, version, &self.platform, &self.mirrors)?;
        fs::create_dir_all(folder).map_err(failed("create", folder))?;
        let _lock = self.lock(binary, folder)?;
        // Another process may have been first.
        if target.is_file() {
            return Ok(target);
        }
        let client = HttpClient::new(self.limits);
        let transfer = Transfer {
            client: &client,
            limits: self.limits,
            report: &*self.report,
            release: &release,
            folder,
        };
        let partial = transfer.receive()?;
        match &release.packaging {
            Packaging::Plain => transfer::publish(&partial, &target)?,
            Packaging::TarGz { entry } => {
                let extracted = folder.join(format!("{}.extracted.partial", binary.name()));
                archive::extract(&partial, entry, &extracted, self.limits.largest_file)?;
                transfer::publish(&extracted, &target)?;
                fs::remove_file(&partial).map_err(failed("remove", &partial))?;
            }
        }
        Ok(target)
    }

    /// Waits until no other process downloads this binary into this folder. The operating system
    /// releases the lock when the process ends, however it ends.
    fn lock(&self, binary: ReleaseBinary, folder: &Path) -> Result<File, Error> {
        let path = folder.join(format!("{}.lock", binary.name()));
        let lock = File::create(&path).map_err(failed("create", &path))?;
        if lock.try_lock().is_err() {
            (self.report)(&DownloadProgress::Waiting {
                file: binary.name(),
            });
            lock.lock().map_err(failed("lock", &path))?;
        }
        Ok(lock)
    }
}

impl fmt::Debug for Downloader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downloader")
            .field("mirrors", &self.mirrors)
            .field("platform", &self.platform)
            .finish_non_exhaustive()
    }
}

// === impl DownloadLimits ===

impl Default for DownloadLimits {
    fn default() -> Self {
        Self {
            response: Duration::from_secs(30),
            silence: Duration::from_secs(30),
            first_pause: Duration::from_millis(500),
            attempts: 5,
            largest_file: LARGEST_FILE,
        }
    }
}

// === impl DownloadProgress ===

impl fmt::Display for DownloadProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
        match *self {
            Self::Waiting { file } => write!(f, "{file}: waiting for another process"),
            Self::Started {
                file,
                url,
                resumed_at,
                total,
            } => {
                write!(f, "{file}: downloading {url}")?;
                if let Some(total) = total {
                    write!(f, ", {}", megabytes(total))?;
                }
                if resumed_at > 0 {
                    write!(f, ", {} of it are here already", megabytes(resumed_at))?;
                }
                Ok(())
            }
            Self::Advanced { file, done, total } => {
                write!(f, "{file}: {}", megabytes(done))?;
                match total {
                    Some(total) => write!(f, " of {}", megabytes(total)),
                    None => Ok(()),
                }
            }
            Self::Retrying { file, error } => write!(f, "{file}: trying again: {error}"),
            Self::Finished { file, bytes } => {
                write!(f, "{file}: {}, the checksum is right", megabytes(bytes))
            }
        }
    }
}

// === impl Error ===

impl Error {
    /// Whether another attempt may succeed.
    fn is_transient(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Interrupted { .. } => true,
            Self::Status { status, .. } => *status >= 500 || matches!(status, 408 | 429),
            _ => false,
        }
    }
}

/// Wraps a failure of a file operation.
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
pub(crate) mod tests;
