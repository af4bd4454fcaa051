//! The test process's end of a guard: starting one, joining one, and asking it for things.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Error;
use crate::assets::{self, Assets, Environment};
use crate::guard::protocol::{Access, Reply, Request};
use crate::guard::{self, Audience, LISTENING, Options};

/// Longer than the guard itself waits for its processes.
const ANSWER_WITHIN: Duration = Duration::from_secs(300);

/// An open connection to a guard, which keeps its control plane alive.
#[derive(Debug)]
pub(super) struct Lease {
    // One conversation at a time: a reply belongs to the request before it.
    connection: Mutex<BufReader<UnixStream>>,
    /// The guard, if it ends with this lease.
    guard: Option<Child>,
}

// === impl Lease ===

impl Lease {
    /// Joins the shared control plane, or starts it if nobody has.
    pub(super) fn join_or_start(
        environment: &Environment,
        assets: Assets,
    ) -> Result<(Self, Access), Error> {
        let folder = environment.cache.join("run");
        let file = |action| move |source| Error::Guard(action, source);
        fs::create_dir_all(&folder).map_err(file("create the folder of running control planes"))?;
        let name = registration_name(&assets)?;
        let (lock, registration) = (
            folder.join(format!("{name}.lock")),
            folder.join(format!("{name}.socket")),
        );
        let turn = File::create(&lock).map_err(file("create the lock of the control plane"))?;
        turn.lock().map_err(file("lock the control plane"))?;
        if let Some(joined) = Self::join(&registration) {
            return Ok(joined);
        }
        Self::start(&Options {
            assets,
            audience: Audience::Shared { lock, registration },
            api_server_flags: Vec::new(),
        })
    }

    /// Joins a registered control plane unless its guard is gone or unwell.
    fn join(registration: &Path) -> Option<(Self, Access)> {
        let socket = PathBuf::from(fs::read_to_string(registration).ok()?);
        let connection = UnixStream::connect(socket).ok()?;
        Self::greet(connection, None).ok()
    }

    /// Starts a guard and waits until its control plane serves.
    pub(super) fn start(options: &Options) -> Result<(Self, Access), Error> {
        let mut guard = Command::new(guard::program()?)
            .arg("guard")
            .args(options.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C must reach the tests only; the guard follows them in good order.
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Guard("start the guard", source))?;
        let mut announced = String::new();
        if let Some(out) = guard.stdout.take() {
            BufReader::new(out)
                .read_line(&mut announced)
                .map_err(|source| Error::Guard("hear from the guard", source))?;
        }
        let Some(socket) = announced.trim_end().strip_prefix(LISTENING) else {
            let status = guard
                .wait()
                .map_err(|source| Error::Guard("wait for the guard", source))?;
            let said = announced.trim_end();
            return Err(Error::Refused(format!(
                "the guard ended with {status}: {said}"
            )));
        };
        let connection = UnixStream::connect(socket)
            .map_err(|source| Error::Guard("connect to the guard", source))?;
        let guard = (options.audience == Audience::Private).then_some(guard);
        Self::greet(connection, guard)
    }

    fn greet(connection: UnixStream, guard: Option<Child>) -> Result<(Self, Access), Error> {
        connection
            .set_read_timeout(Some(ANSWER_WITHIN))
            .map_err(|source| Error::Guard("limit the wait for the guard", source))?;
        let lease = Self {
            connection: Mutex::new(BufReader::new(connection)),
            guard,
        };
        match lease.read_reply()? {
            Reply::Ready(access) => Ok((lease, access)),
            Reply::Done => Err(Error::Refused("the guard does not greet".to_owned())),
            Reply::Failed(message) => Err(Error::Refused(message)),
        }
    }

    /// Whether the control plane ends with this lease.
    pub(super) fn is_private(&self) -> bool {
        self.guard.is_some()
    }

    pub(super) fn request(&self, request: &Request) -> Result<(), Error> {
        let mut line = serde_json::to_vec(request)
            .map_err(|error| Error::Guard("write a request", error.into()))?;
        line.push(b'\n');
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connection
            .get_mut()
            .write_all(&line)
            .map_err(|source| Error::Guard("ask the guard", source))?;
        match read_reply(&mut connection)? {
            Reply::Done | Reply::Ready(_) => Ok(()),
            Reply::Failed(message) => Err(Error::Refused(message)),
        }
    }

    fn read_reply(&self) -> Result<Reply, Error> {
        read_reply(
            &mut self
                .connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(guard) = &mut self.guard else {
            return;
        };
        let connection = self
            .connection
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // The kernel does the same when this process ends; the wait only makes it visible earlier.
        let _ = connection.get_ref().shutdown(net::Shutdown::Both);
        let _ = guard.wait();
    }
}

fn read_reply(connection: &mut BufReader<UnixStream>) -> Result<Reply, Error> {
    let mut line = String::new();
    connection
        .read_line(&mut line)
        .map_err(|source| Error::Guard("hear from the guard", source))?;
    if line.is_empty() {
        let gone = io::Error::from(io::ErrorKind::UnexpectedEof);
        return Err(Error::Guard("the guard is gone", gone));
    }
    serde_json::from_str(&line).map_err(|error| Error::Guard("understand the guard", error.into()))
}

/// Test processes share a control plane if they use the same program and the same binaries.
fn registration_name(assets: &Assets) -> Result<String, Error> {
    let program = guard::program()?;
    let manager = assets
        .kube_controller_manager
        .as_deref()
        .unwrap_or(Path::new(""));
    let paths = [&program, &assets.etcd, &assets.kube_apiserver].map(PathBuf::as_path);
    let parts = paths.into_iter().chain([manager]);
    Ok(assets::fingerprint(
        parts.map(|path| path.as_os_str().as_encoded_bytes()),
    ))
}
