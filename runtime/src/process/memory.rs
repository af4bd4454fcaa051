//! The pipeline's state of an object between two calls; small, as there may be many objects.

use std::sync::Arc;

use kopf_core::cause::detect::ObjectHistory;
use kopf_core::reverts::WriteRate;
use serde_json::Value;

use crate::client::resource_version::ResourceVersion;

/// The state of one object; a restarted operator goes on without it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// How the object was first observed; none until its first event.
    pub(crate) history: Option<ObjectHistory>,
    /// The version after our last write: older events are redundant.
    pub(crate) written: Option<ResourceVersion>,
    /// Failures in a row of the runtime itself, not of handlers.
    pub(crate) failures: u8,
    /// The rate of our writes to the object.
    pub(crate) pace: WriteRate,
    /// True if the last event came from a list, among many others.
    pub(crate) listed: bool,
    /// The newest state, as long as a turn is due.
    pub(crate) current: Option<Arc<Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_an_object_takes_forty_bytes() {
        assert_eq!(size_of::<Memory>(), 40);
    }
}
