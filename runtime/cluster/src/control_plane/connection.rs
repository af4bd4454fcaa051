//! The test process's connection to a supervisor: starts or joins one, and sends it requests.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Error;
use crate::binaries::{self, Binaries, Environment, FoundBinaries};
use crate::program::Program;
use crate::supervisor::protocol::{ControlPlaneEndpoints, SupervisorReply, SupervisorRequest};
use crate::supervisor::{self, LISTENING, Sharing, SupervisorOptions};

/// Longer than the supervisor itself waits for its processes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(300);

/// An open connection to a supervisor, which keeps its control plane running.
#[derive(Debug)]
pub(super) struct SupervisorConnection {
    // One request at a time: a reply belongs to the request before it.
    stream: Mutex<BufReader<UnixStream>>,
    /// The supervisor's process, if it ends with this connection.
    supervisor: Option<Child>,
}

// === impl SupervisorConnection ===

impl SupervisorConnection {
    /// Joins the shared control plane, or starts it if it is not running.
    pub(super) fn join_or_start(
        program: &Program,
        environment: &Environment,
        found: &FoundBinaries,
    ) -> Result<(Self, ControlPlaneEndpoints), Error> {
        let folder = environment.folders.cache.join("run");
        let file = |action| move |source| Error::Supervisor(action, source);
        fs::create_dir_all(&folder).map_err(file("create the folder of running control planes"))?;
        let name = registration_name(program, &found.binaries);
        let (lock, registration) = (
            folder.join(format!("{name}.lock")),
            folder.join(format!("{name}.socket")),
        );
        let file_lock =
            File::create(&lock).map_err(file("create the lock of the control plane"))?;
        file_lock.lock().map_err(file("lock the control plane"))?;
        if let Some(joined) = Self::join(&registration) {
            return Ok(joined);
        }
        binaries::print_status(&format!("starts {found}"));
        let options = SupervisorOptions {
            binaries: found.binaries.clone(),
            sharing: Sharing::Shared { lock, registration },
            api_server_flags: Vec::new(),
        };
        Self::start(program, &options)
    }

    /// Joins a registered control plane, unless its supervisor ended or reports a failure.
    fn join(registration: &Path) -> Option<(Self, ControlPlaneEndpoints)> {
        let socket = PathBuf::from(fs::read_to_string(registration).ok()?);
        let stream = UnixStream::connect(socket).ok()?;
        Self::wait_until_ready(stream, None).ok()
    }

    /// Starts a supervisor and waits until its control plane is ready.
    pub(super) fn start(
        program: &Program,
        options: &SupervisorOptions,
    ) -> Result<(Self, ControlPlaneEndpoints), Error> {
        let mut supervisor = program
            .command(supervisor::SUBCOMMAND)
            .args(options.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C must reach the tests only; the supervisor ends after them.
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Supervisor("start the supervisor", source))?;
        let mut announced = String::new();
        if let Some(out) = supervisor.stdout.take() {
            BufReader::new(out)
                .read_line(&mut announced)
                .map_err(|source| Error::Supervisor("read from the supervisor", source))?;
        }
        let Some(socket) = announced.trim_end().strip_prefix(LISTENING) else {
            let status = supervisor
                .wait()
                .map_err(|source| Error::Supervisor("wait for the supervisor", source))?;
            let output = announced.trim_end();
            return Err(Error::Refused(format!(
                "the supervisor ended with {status}: {output}"
            )));
        };
        let stream = UnixStream::connect(socket)
            .map_err(|source| Error::Supervisor("connect to the supervisor", source))?;
        let supervisor = (options.sharing == Sharing::Private).then_some(supervisor);
        Self::wait_until_ready(stream, supervisor)
    }

    /// Waits for the supervisor's first reply, which has the endpoints.
    fn wait_until_ready(
        stream: UnixStream,
        supervisor: Option<Child>,
    ) -> Result<(Self, ControlPlaneEndpoints), Error> {
        stream
            .set_read_timeout(Some(REPLY_TIMEOUT))
            .map_err(|source| Error::Supervisor("set the read timeout", source))?;
        let connection = Self {
            stream: Mutex::new(BufReader::new(stream)),
            supervisor,
        };
        match connection.read_reply()? {
            SupervisorReply::Ready(endpoints) => Ok((connection, endpoints)),
            SupervisorReply::Done => Err(Error::Refused(
                "the supervisor sent no endpoints".to_owned(),
            )),
            SupervisorReply::Failed(message) => Err(Error::Refused(message)),
        }
    }

    /// Whether the control plane ends with this connection.
    pub(super) fn is_private(&self) -> bool {
        self.supervisor.is_some()
    }

    pub(super) fn request(&self, request: &SupervisorRequest) -> Result<(), Error> {
        let mut line = serde_json::to_vec(request)
            .map_err(|error| Error::Supervisor("write a request", error.into()))?;
        line.push(b'\n');
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream
            .get_mut()
            .write_all(&line)
            .map_err(|source| Error::Supervisor("write to the supervisor", source))?;
        match read_reply(&mut stream)? {
            SupervisorReply::Done | SupervisorReply::Ready(_) => Ok(()),
            SupervisorReply::Failed(message) => Err(Error::Refused(message)),
        }
    }

    fn read_reply(&self) -> Result<SupervisorReply, Error> {
        read_reply(&mut self.stream.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for SupervisorConnection {
    fn drop(&mut self) {
        let Some(supervisor) = &mut self.supervisor else {
            return;
        };
        let stream = self
            .stream
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // The kernel closes the stream too when this process ends; the wait only makes the end
        // visible to the caller.
        let _ = stream.get_ref().shutdown(net::Shutdown::Both);
        let _ = supervisor.wait();
    }
}

fn read_reply(stream: &mut BufReader<UnixStream>) -> Result<SupervisorReply, Error> {
    let mut line = String::new();
    stream
        .read_line(&mut line)
        .map_err(|source| Error::Supervisor("read from the supervisor", source))?;
    if line.is_empty() {
        let gone = io::Error::from(io::ErrorKind::UnexpectedEof);
        return Err(Error::Supervisor("the supervisor ended", gone));
    }
    serde_json::from_str(&line)
        .map_err(|error| Error::Supervisor("parse the supervisor's reply", error.into()))
}

/// Test processes share a control plane if they use the same program and the same binaries.
fn registration_name(program: &Program, binaries: &Binaries) -> String {
    let manager = binaries
        .kube_controller_manager
        .as_deref()
        .unwrap_or(Path::new(""));
    let paths = [program.path(), &binaries.etcd, &binaries.kube_apiserver];
    let parts = paths.into_iter().chain([manager]);
    binaries::fingerprint(parts.map(|path| path.as_os_str().as_encoded_bytes()))
}
