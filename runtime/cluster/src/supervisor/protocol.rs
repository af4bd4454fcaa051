//! The messages between a test process and a supervisor: one JSON document per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::component::Component;

/// The addresses and files of a control plane that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControlPlaneEndpoints {
    /// Certificates, logs and all other files of this control plane; the supervisor removes it.
    pub(crate) folder: PathBuf,
    pub(crate) server: String,
    pub(crate) etcd: String,
    /// The process id of the supervisor.
    pub(crate) supervisor: u32,
    pub(crate) has_controller_manager: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SupervisorRequest {
    /// End a process at once.
    Kill(Component),
    /// Stop scheduling a process, so that its connections stay open and silent.
    Pause(Component),
    /// Schedule a paused process again.
    Resume(Component),
    /// Start a process that was killed, and wait until it serves.
    Start(Component),
    /// Replace the additional flags of the API server, from its next start on.
    SetApiServerFlags(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SupervisorReply {
    /// The control plane is ready: the first reply on every connection.
    Ready(ControlPlaneEndpoints),
    /// The request succeeded.
    Done,
    /// The control plane did not start, or the request failed.
    Failed(String),
}
