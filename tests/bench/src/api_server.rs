//! The process of the API server, for its share of the work.

use std::net::SocketAddr;
use std::{fs, io};

use kopf_tests::{Sandbox, TestFailure};

use crate::process;

/// The process of the API server.
#[derive(Debug)]
pub(crate) struct ApiServerProcess {
    pub(crate) address: SocketAddr,
    pid: String,
}

// === impl ApiServerProcess ===

impl ApiServerProcess {
    /// Finds the API server of a control plane on this machine.
    pub(crate) fn find(sandbox: &Sandbox) -> Result<Self, TestFailure> {
        let kubeconfig = sandbox.control_plane().administrator_kubeconfig();
        let kubeconfig = fs::read_to_string(kubeconfig)?;
        let (_, rest) = kubeconfig
            .split_once("https://")
            .ok_or_else(|| TestFailure::new("the kubeconfig names no server"))?;
        let end = rest.find(|it: char| !(it.is_ascii_digit() || ".:".contains(it)));
        let address: SocketAddr = rest[..end.unwrap_or(rest.len())].parse()?;
        let flag = format!("--secure-port={}", address.port());
        for entry in fs::read_dir("/proc")?.flatten() {
            let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments);
            let mut arguments = arguments.split('\0');
            let is_server = arguments.next().is_some_and(|it| it.ends_with("apiserver"));
            if is_server && arguments.any(|it| it == flag) {
                let pid = entry.file_name().to_string_lossy().into_owned();
                return Ok(Self { address, pid });
            }
        }
        Err(TestFailure::new(
            "the API server is no process of this machine",
        ))
    }

    /// The CPU time that it has used so far, in seconds.
    pub(crate) fn cpu(&self) -> io::Result<f64> {
        process::cpu_of(&self.pid)
    }
}
