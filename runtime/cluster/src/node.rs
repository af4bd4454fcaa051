//! A simulated node: it plays Pods, so that Deployments become available where no kubelet runs.
//!
//! On a control plane of etcd, kube-apiserver and kube-controller-manager there is no scheduler and
//! no kubelet: Pods would stay pending for ever. [`run`] registers one Node, [`NODE_NAME`], binds
//! pending Pods to it and reports the states that a kubelet would report. No container runs.
//!
//! How a Pod ends is decided by its annotation [`POD_RESULT_ANNOTATION`]; see [`PodResult`].

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::timeout;

mod addresses;
mod pod_action;
mod pod_result;
mod pod_status;
mod pod_watch;
mod pods;
mod registration;

pub use pod_result::{PodResult, UnknownPodResult};

/// The name of the simulated Node.
pub const NODE_NAME: &str = "kopf-gen";

/// The annotation of a Pod that decides how the Pod ends; its values are those of [`PodResult`].
pub const POD_RESULT_ANNOTATION: &str = "kopf-gen.dev/pod-result";

/// The label of the Node that says that it is simulated.
pub const SIMULATED_LABEL: &str = "kopf-gen.dev/simulated";

/// The name under which this node writes fields.
const FIELD_MANAGER: &str = "kopf-gen-node";

/// No request takes longer on a loopback connection, unless the API server hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The reasons why a request of the node failed. The node logs them and tries again.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot {action}")]
    Request {
        action: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("cannot {action}: the API server did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout { action: &'static str },
}

/// Runs the node until `stop` is ready.
///
/// The node keeps all its state on the Node, its Lease and the Pods: it can be killed at any
/// instant, and the next one goes on with the Pods that it finds. It retries what fails and never
/// ends by itself. The client needs all permissions on nodes, leases and pods.
pub async fn run(client: Client, stop: impl Future<Output = ()>) {
    tokio::select! {
        () = stop => {}
        () = registration::keep_registered(&client) => {}
        () = pods::play(&client) => {}
    }
}

/// Sends a request with a time limit.
async fn request<T>(
    action: &'static str,
    answer: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    match timeout(REQUEST_TIMEOUT, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(Error::Request {
            action,
            source: Box::new(source),
        }),
        Err(_) => Err(Error::Timeout { action }),
    }
}

/// The current time as Kubernetes stores it: in whole seconds.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

// === impl Error ===

impl Error {
    /// The HTTP status of the response, if there was one.
    fn code(&self) -> Option<u16> {
        match self {
            Self::Request { source, .. } => match &**source {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Timeout { .. } => None,
        }
    }
}
