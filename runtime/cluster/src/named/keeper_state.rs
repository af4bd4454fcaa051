//! The file in which the keeper of a named cluster reports its state.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::UpDetails;

const FILE: &str = "state.json";

/// Whether a simulated node plays Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pods {
    /// Pods become scheduled, running and ready; no container runs.
    Simulated,
    /// Pods stay pending.
    Pending,
}

/// The state of a named cluster, as its keeper last wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeeperState {
    pub(super) keeper: i32,
    pub(super) phase: KeeperPhase,
    pub(super) server: String,
    pub(super) binaries: String,
    /// The version that has written the data.
    pub(super) version: Option<String>,
    pub(super) pods: Pods,
    pub(super) restarts: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum KeeperPhase {
    Starting,
    Ready,
    Stopped,
    Failed(String),
}

// === impl KeeperState ===

impl KeeperState {
    /// The last state; none if there is no readable one.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(FILE)).ok()?).ok()
    }

    /// Replaces the file atomically, so that no reader sees half of it.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.persist(folder.join(FILE))?;
        Ok(())
    }

    pub(super) fn is_written_by(&self, keeper: Pid) -> bool {
        self.keeper == keeper.as_raw_nonzero().get()
    }

    pub(super) fn details(self, keeper: Pid) -> UpDetails {
        UpDetails {
            server: self.server,
            binaries: self.binaries,
            keeper: keeper.as_raw_nonzero().get(),
            pods: self.pods,
            restarts: self.restarts,
        }
    }
}
