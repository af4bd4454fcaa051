//! What the operator remembers about an object between two calls; small, for there may be many.

use std::sync::Arc;

use kopf_core::cause::detect::ObjectHistory;
use kopf_core::reverts::WriteRate;
use serde_json::Value;

use crate::client::resource_version::ResourceVersion;

/// The memory of one object; nothing of it is needed to continue after a restart.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// How the object came to our notice; none before the first sight of it.
    pub(crate) history: Option<ObjectHistory>,
    /// The version after our last write: everything older is known.
    pub(crate) written: Option<ResourceVersion>,
    /// Failures in a row of the runtime itself, not of handlers.
    pub(crate) failures: u8,
    /// How quickly the object is written to.
    pub(crate) pace: WriteRate,
    /// Whether the last sight of the object was in a list, among many others.
    pub(crate) listed: bool,
    /// The newest state, as long as something is still to be done about it.
    pub(crate) current: Option<Arc<Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_remembered_in_forty_bytes() {
        assert_eq!(size_of::<Memory>(), 40);
    }
}
