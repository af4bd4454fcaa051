//! The engines beside the pipeline, each reached through a narrow handle.

pub(crate) mod posting;
