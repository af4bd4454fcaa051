//! The ports of a control plane: free ones, and those of its last start if they are free.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::DataLifetime;

/// Below the range from which kernels take ports for outgoing connections, so that the port of a
/// killed server stays free.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The file with the ports of the last start.
const FILE: &str = "ports.json";

/// The ports of one control plane, all on loopback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) etcd_peer: u16,
    pub(super) api_server: u16,
}

// === impl Ports ===

impl Ports {
    /// Three ports that are free now; those of the last start if possible, so that kubeconfigs stay
    /// valid.
    pub(super) fn pick(folder: &Path, lifetime: DataLifetime) -> io::Result<Self> {
        let last = match lifetime {
            DataLifetime::Temporary => None,
            DataLifetime::Kept => Self::last(folder),
        };
        if let Some(last) = last.filter(|last| last.are_free()) {
            return Ok(last);
        }
        // Binding all before releasing any keeps the three different.
        let bound = [free_port()?, free_port()?, free_port()?];
        let port = |index: usize| bound[index].local_addr().map(|address| address.port());
        Ok(Self {
            etcd: port(0)?,
            etcd_peer: port(1)?,
            api_server: port(2)?,
        })
    }

    pub(super) fn remember(self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join(FILE), serde_json::to_vec(&self)?)
    }

    fn last(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(FILE)).ok()?).ok()
    }

    fn are_free(self) -> bool {
        let ports = [self.etcd, self.etcd_peer, self.api_server];
        let bound = ports.map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
        bound.iter().all(Result::is_ok)
    }

    pub(super) fn server(self) -> String {
        format!("https://127.0.0.1:{}", self.api_server)
    }
}

fn free_port() -> io::Result<TcpListener> {
    let mut last = None;
    for attempt in 0..100_u32 {
        // A new `RandomState` is the standard library's only source of randomness.
        let random = RandomState::new().hash_one(attempt) % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(random).unwrap_or_default();
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}
