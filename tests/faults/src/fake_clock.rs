//! A wall clock that jumps, for the processes of the operator only: that of libfaketime.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use kopf_cluster::child_process::ChildProcessBuilder;

/// The variable with the path of `libfaketime.so.1`, if it is not where Debian installs it.
const LIBRARY: &str = "FAULTS_FAKETIME";

/// The places where distributions install it.
const PLACES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
];

/// A clock that all processes of the operator read. The monotonic clock stays as it is.
#[derive(Clone, Debug)]
pub(crate) struct FakeClock {
    library: PathBuf,
    /// The file with the offset.
    file: PathBuf,
}

// === impl FakeClock ===

impl FakeClock {
    /// Whether the library is installed.
    pub(crate) fn is_available() -> bool {
        library().is_some()
    }

    /// A clock without an offset, if the library is installed.
    pub(crate) fn open(folder: &Path) -> io::Result<Option<Self>> {
        let Some(library) = library() else {
            return Ok(None);
        };
        let clock = Self {
            library,
            file: folder.join("clock"),
        };
        clock.set(0)?;
        Ok(Some(clock))
    }

    /// Sets the clock to so many seconds after the real one, or before it.
    pub(crate) fn set(&self, offset: i64) -> io::Result<()> {
        let unfinished = self.file.with_extension("unfinished");
        fs::write(&unfinished, format!("{offset:+}\n"))?;
        fs::rename(&unfinished, &self.file)
    }

    /// Gives the clock to a process.
    pub(crate) fn prepare(&self, process: ChildProcessBuilder) -> ChildProcessBuilder {
        process
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }
}

fn library() -> Option<PathBuf> {
    let named = env::var_os(LIBRARY).map(PathBuf::from).into_iter();
    named
        .chain(PLACES.map(PathBuf::from))
        .find(|path| path.is_file())
}
