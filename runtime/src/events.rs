//! Kubernetes events about objects, and the log spans that name the object.

pub(crate) mod log_layer;
pub(crate) mod object_ref;
pub(crate) mod posting;
pub(crate) mod recorder;
pub(crate) mod span;
