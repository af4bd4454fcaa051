//! The processes that make up a control plane.

use serde::{Deserialize, Serialize};

/// One process of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Component {
    /// The database.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers: garbage collection, namespaces, service accounts, workloads.
    ControllerManager,
}

// === impl Component ===

impl Component {
    /// All components, in the order in which they start.
    pub const ALL: [Self; 3] = [Self::Etcd, Self::ApiServer, Self::ControllerManager];

    /// The name of its program and of its log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }
}
