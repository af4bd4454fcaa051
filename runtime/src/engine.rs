//! The engines beside the pipeline, each reached through a narrow handle.

pub(crate) mod election;
pub(crate) mod peering;
pub(crate) mod posting;
pub(crate) mod reporter;
pub(crate) mod subject;
pub(crate) mod voice;
