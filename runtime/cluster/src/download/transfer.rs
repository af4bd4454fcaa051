//! Receives one file, in as many attempts as it takes, and checks it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use ring::digest::{Context, SHA256};

use super::http_client::{FileAnswer, FileBody, HttpClient};
use super::release::ReleaseFile;
use super::{DownloadLimits, DownloadProgress, Error, LARGEST_CHECKSUMS, failed};

const CHUNK: usize = 64 << 10;

/// The number of bytes between two reports. An attempt that brings so much does not count as failed.
const STEP: u64 = 1 << 20;

/// The download of one file into a folder.
pub(super) struct Transfer<'a> {
    pub(super) client: &'a HttpClient,
    pub(super) limits: DownloadLimits,
    pub(super) report: &'a dyn Fn(&DownloadProgress<'_>),
    pub(super) release: &'a ReleaseFile,
    pub(super) folder: &'a Path,
}

/// A file that is being received.
struct PartialFile {
    file: File,
    path: PathBuf,
    length: u64,
    sum: Context,
}

// === impl Transfer ===

impl Transfer<'_> {
    /// The path of the received file, still under its partial name; its checksum is right.
    pub(super) fn receive(&self) -> Result<PathBuf, Error> {
        let expected = self.retry(|| self.expected_sum())?;
        let path = self.folder.join(format!("{}.partial", self.release.name));
        let mut partial = PartialFile::open(path)?;
        let earlier = partial.length;
        self.fill(&mut partial)?;
        let mut actual = partial.hexadecimal_sum();
        if actual != expected && earlier > 0 {
            // What was there may be of another file.
            partial.clear()?;
            self.fill(&mut partial)?;
            actual = partial.hexadecimal_sum();
        }
        if actual != expected {
            fs::remove_file(&partial.path).map_err(failed("remove", &partial.path))?;
            return Err(Error::Checksum {
                url: self.release.url.clone(),
                expected,
                actual,
            });
        }
        (self.report)(&DownloadProgress::Finished {
            file: &self.release.name,
            bytes: partial.length,
        });
        Ok(partial.path)
    }

    fn expected_sum(&self) -> Result<String, Error> {
        let url = &self.release.checksum_url;
        let text = self.client.text(url, LARGEST_CHECKSUMS)?;
        self.release
            .checksum_in(&text)
            .ok_or_else(|| Error::NoChecksum {
                url: url.clone(),
                file: self.release.name.clone(),
            })
    }

    /// Receives until the server has no more bytes.
    fn fill(&self, partial: &mut PartialFile) -> Result<(), Error> {
        let mut best = partial.length;
        let mut failures = 0;
        loop {
            let Err(error) = self.attempt(partial) else {
                return Ok(());
            };
            if partial.length >= best + STEP {
                best = partial.length;
                failures = 0;
            }
            failures += 1;
            self.pause_or_fail(failures, error)?;
        }
    }

    /// One request, which continues the file or, if the server has no ranges, begins it anew.
    fn attempt(&self, partial: &mut PartialFile) -> Result<(), Error> {
        let url = &self.release.url;
        let answer = self.client.file(url, partial.length)?;
        let FileAnswer::Body(body) = answer else {
            // All is there, or more than all: the checksum decides.
            return Ok(());
        };
        if body.offset != partial.length {
            partial.clear()?;
        }
        if body.offset != partial.length {
            return Err(Error::Url {
                url: url.clone(),
                reason: "the server sends another part of the file than the requested one",
            });
        }
        (self.report)(&DownloadProgress::Started {
            file: &self.release.name,
            url,
            resumed_at: partial.length,
            total: body.total,
        });
        self.copy(body, partial)
    }

    fn copy(&self, mut body: FileBody, partial: &mut PartialFile) -> Result<(), Error> {
        let interrupted = |received, source| Error::Interrupted {
            url: self.release.url.clone(),
            received,
            source,
        };
        let mut buffer = vec![0; CHUNK];
        let mut reported = partial.length;
        loop {
            let count = match body.reader.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(|source| interrupted(partial.length, source))?,
            };
            if count == 0 {
                break;
            }
            if partial.length + count as u64 > self.limits.largest_file {
                return Err(self.too_large(partial));
            }
            partial.append(&buffer[..count])?;
            if partial.length >= reported + STEP {
                reported = partial.length;
                (self.report)(&DownloadProgress::Advanced {
                    file: &self.release.name,
                    done: partial.length,
                    total: body.total,
                });
            }
        }
        match body.total {
            Some(total) if partial.length < total => {
                Err(interrupted(partial.length, ErrorKind::UnexpectedEof.into()))
            }
            _ => Ok(()),
        }
    }

    /// What has no end is not worth keeping.
    fn too_large(&self, partial: &PartialFile) -> Error {
        // The error is about the server; a file that stays is checked again anyway.
        let _ = fs::remove_file(&partial.path);
        Error::TooLarge {
            url: self.release.url.clone(),
            limit: self.limits.largest_file,
        }
    }

    fn retry<T>(&self, attempt: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        let mut failures = 0;
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => {
                    failures += 1;
                    self.pause_or_fail(failures, error)?;
                }
            }
        }
    }

    fn pause_or_fail(&self, failures: u32, error: Error) -> Result<(), Error> {
        if failures >= self.limits.attempts || !error.is_transient() {
            return Err(error);
        }
        (self.report)(&DownloadProgress::Retrying {
            file: &self.release.name,
            error: &error,
        });
        thread::sleep(self.limits.first_pause * (1 << (failures - 1).min(6)));
        Ok(())
    }
}

// === impl PartialFile ===

impl PartialFile {
    /// Opens the file of an earlier attempt, or a new one.
    fn open(path: PathBuf) -> Result<Self, Error> {
        let mut file = File::options()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(failed("open", &path))?;
        let mut sum = Context::new(&SHA256);
        let mut buffer = vec![0; CHUNK];
        let mut length = 0;
        loop {
            let count = file.read(&mut buffer).map_err(failed("read", &path))?;
            if count == 0 {
                break;
            }
            sum.update(&buffer[..count]);
            length += count as u64;
        }
        Ok(Self {
            file,
            path,
            length,
            sum,
        })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes);
        written.map_err(failed("write", &self.path))?;
        self.sum.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        let cleared = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)));
        cleared.map_err(failed("empty", &self.path))?;
        self.length = 0;
        self.sum = Context::new(&SHA256);
        Ok(())
    }

    fn hexadecimal_sum(&self) -> String {
        let digest = self.sum.clone().finish();
        digest
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// Gives a checked file its own name, after it is on disk and can be executed.
pub(super) fn publish(partial: &Path, target: &Path) -> Result<(), Error> {
    make_executable(partial)?;
    let file = File::open(partial).map_err(failed("open", partial))?;
    file.sync_all().map_err(failed("sync", partial))?;
    fs::rename(partial, target).map_err(failed("rename", partial))?;
    // Without this, a power loss could undo the renaming, which does no harm.
    if let Some(folder) = target.parent() {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(failed("sync", folder))?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(failed("make executable", path))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), Error> {
    Ok(())
}
