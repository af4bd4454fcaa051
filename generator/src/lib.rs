//! Reads CustomResourceDefinitions and the manifest `kopf.yaml`, and writes a typed operator crate.

pub mod applied;
pub mod cli;
pub mod compatibility;
pub mod crate_path;
pub mod dependencies;
pub mod diagnostic;
pub mod diff;
pub mod edit;
pub mod format;
pub mod helm_expression;
pub mod load;
pub mod model;
pub mod pipeline;
pub mod plan;
pub mod project;
pub mod rename;
pub mod render;
pub mod runtime_source;
pub mod rust;
pub mod splice;
pub mod suggest;
pub mod types;
pub mod write;
pub mod yaml;
