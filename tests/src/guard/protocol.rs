//! What a lease holder and a guard say to each other: one JSON document per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One process of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// Garbage collection, namespaces, service accounts.
    ControllerManager,
}

/// How to reach a control plane that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    /// Holds certificates, logs and everything else of this control plane; gone with it.
    pub(crate) folder: PathBuf,
    pub(crate) server: String,
    pub(crate) etcd: String,
    pub(crate) guard: u32,
    pub(crate) has_controller_manager: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// End a process at once.
    Kill(Component),
    /// Stop scheduling a process, so that its connections stay open and silent.
    Pause(Component),
    /// Schedule a paused process again.
    Resume(Component),
    /// Start a process that was killed, and wait until it serves.
    Start(Component),
    /// Replace the additional flags of the API server; they hold from its next start.
    SetApiServerFlags(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The greeting of a control plane that serves.
    Ready(Access),
    /// The request was carried out.
    Done,
    /// The control plane did not start, or the request failed.
    Failed(String),
}

// === impl Component ===

impl Component {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }
}
