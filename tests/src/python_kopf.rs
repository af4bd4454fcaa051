//! Installs and runs the real Python Kopf, for comparisons with our operators.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries::Environment;
use crate::child_process::ChildProcessBuilder;
use crate::sandbox::Sandbox;
use crate::test_failure::TestFailure;
use crate::user::User;

/// The version that our behaviour is compared with.
pub const KOPF_VERSION: &str = "1.45.2";

const PYTHON: &str = "python3";

/// An installed Kopf.
#[derive(Clone, Debug)]
pub struct PythonKopf {
    packages: PathBuf,
}

/// The reasons why there is no Kopf.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache folder could not be prepared.
    #[error("{action} {}", path.display())]
    Cache {
        /// The failed operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// There is no Python.
    #[error("run {PYTHON}, which comparisons with Kopf need (3.11 or newer, with pip)")]
    Python(#[source] io::Error),
    /// Kopf could not be installed.
    #[error(
        "pip could not install kopf=={KOPF_VERSION}, which comparisons with Kopf need; it takes {PYTHON} 3.11 or newer \
         and a reachable package index (see PIP_INDEX_URL):\n{0}"
    )]
    Pip(String),
    /// The thread of the installation panicked.
    #[error("wait for the installation of Kopf")]
    Thread(#[from] tokio::task::JoinError),
}

// === impl PythonKopf ===

impl PythonKopf {
    /// Installs Kopf into the cache once; later calls, also from other processes, find it there.
    pub async fn obtain() -> Result<Self, Error> {
        tokio::task::spawn_blocking(|| {
            Self::install(&Environment::from_process(None).folders.cache)
        })
        .await?
    }

    fn install(cache: &Path) -> Result<Self, Error> {
        let folder = cache.join("python-kopf");
        let packages = folder.join(KOPF_VERSION);
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| Error::Cache {
                action,
                path,
                source,
            }
        };
        fs::create_dir_all(&folder).map_err(failed("create", &folder))?;
        let lock = folder.join("lock");
        let file_lock = File::create(&lock).map_err(failed("create", &lock))?;
        file_lock.lock().map_err(failed("lock", &lock))?;
        if packages.exists() {
            return Ok(Self { packages });
        }
        let unfinished = folder.join(format!("{KOPF_VERSION}.unfinished"));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(failed("remove", &unfinished))?;
        }
        let pip = Command::new(PYTHON)
            .args(["-m", "pip", "install", "--quiet"])
            .args(["--disable-pip-version-check", "--target"])
            .arg(&unfinished)
            .arg(format!("kopf=={KOPF_VERSION}"))
            .output()
            .map_err(Error::Python)?;
        if !pip.status.success() {
            return Err(Error::Pip(
                String::from_utf8_lossy(&pip.stderr).into_owned(),
            ));
        }
        fs::rename(&unfinished, &packages).map_err(failed("rename", &unfinished))?;
        Ok(Self { packages })
    }

    /// Runs Python code that may import Kopf, and returns its output.
    pub fn evaluate(&self, code: &str, argument: &str) -> Result<String, TestFailure> {
        let output = Command::new(PYTHON)
            .env("PYTHONPATH", &self.packages)
            .args(["-c", code, argument])
            .output()
            .map_err(Error::Python)?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(TestFailure::new(errors));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Prepares to run a script that only uses Kopf as a library.
    pub fn script(&self, script: &Path) -> Command {
        let mut python = Command::new(PYTHON);
        python
            .arg(script)
            .env("PYTHONPATH", &self.packages)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }

    /// Prepares to run the handlers in `script` on the sandbox's namespace, as `user`, without
    /// peering. The script may import modules from its folder.
    pub fn operator(
        &self,
        sandbox: &Sandbox,
        user: &User,
        script: &Path,
    ) -> Result<ChildProcessBuilder, TestFailure> {
        Ok(self.peer(sandbox, user, script)?.arg("--standalone"))
    }

    /// The same with peering.
    pub fn peer(
        &self,
        sandbox: &Sandbox,
        user: &User,
        script: &Path,
    ) -> Result<ChildProcessBuilder, TestFailure> {
        let (python, modules) = self.interpreter(script)?;
        Ok(sandbox
            .operator(python, user)?
            .env("GROUP", sandbox.group())
            .env("PYTHONPATH", modules)
            .env("PYTHONUNBUFFERED", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg("-m")
            .arg("kopf")
            .arg("run")
            .arg("--namespace")
            .arg(sandbox.namespace())
            .arg(script))
    }

    /// Python, and the `PYTHONPATH` with which a script finds Kopf and the modules beside it.
    pub fn interpreter(&self, script: &Path) -> Result<(PathBuf, OsString), TestFailure> {
        let python = env::split_paths(&env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join(PYTHON))
            .find(|file| file.is_file())
            .ok_or_else(|| TestFailure::from(Error::Python(io::ErrorKind::NotFound.into())))?;
        let beside = script.parent().unwrap_or(Path::new("."));
        Ok((python, env::join_paths([self.packages.as_path(), beside])?))
    }
}
