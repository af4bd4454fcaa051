//! A real Kubernetes control plane on this machine: etcd, kube-apiserver and kube-controller-manager
//! on loopback, without containers.
//!
//! Tests share one control plane ([`ControlPlane::shared`]), or start one that they may break
//! ([`PrivateControlPlane`]). Both end with the processes that use them, however those end.

pub mod audit;
pub mod binaries;
pub mod child_process;
pub mod component;
pub mod control_plane;
pub mod download;
pub mod named;
pub mod node;
pub mod pki;
mod processes;
pub mod program;
pub mod subcommand;
mod supervisor;
pub mod test_failure;
pub mod user;

pub use audit::RequestCounts;
pub use child_process::ChildProcess;
pub use component::Component;
pub use control_plane::{ControlPlane, PrivateControlPlane};
pub use named::{ClusterName, NamedCluster};
pub use program::Program;
pub use test_failure::{TestFailure, TestResult};
pub use user::User;
