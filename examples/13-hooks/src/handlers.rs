//! What the operator knows, and the handlers of each kind.

mod hooks;
mod pod;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

/// Lives as long as the operator and is shared by all handlers: the place for clients and pools.
#[derive(Debug, Default)]
pub struct Operator {
    /// The tasks beside the Pods.
    tasks: Mutex<JoinSet<()>>,
    /// Tells all of them that it is time to end.
    ending: watch::Sender<bool>,
}
