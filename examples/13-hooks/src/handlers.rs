//! The state of the operator, and a module of handlers for each kind.

mod hooks;
mod pod;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

/// The state that all handlers share while the operator runs, such as clients and connection pools.
#[derive(Debug, Default)]
pub struct Operator {
    /// The background tasks of the Pods.
    tasks: Mutex<JoinSet<()>>,
    /// Signals all tasks to end.
    ending: watch::Sender<bool>,
}
