//! The reasons for which a session ends.

use kopf_cluster::child_process;

/// The reasons for which a session ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the cluster cannot be started")]
    Cluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("there is no access to the cluster")]
    Access(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the kubeconfig has no context `{0}`: `kubectl config get-contexts` lists them")]
    NoContext(String),
    #[error("cannot {action}")]
    Program {
        action: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("the crate has no program: it needs a src/main.rs")]
    NoProgram,
    #[error("the operator cannot be started")]
    Operator(#[source] child_process::Error),
    #[error("the sample {name} cannot be applied: {reason}")]
    Sample { name: String, reason: String },
    #[error("the first build failed: correct it, and run the command again")]
    FirstBuild,
    #[error("the operator has ended by itself")]
    Ended,
}
