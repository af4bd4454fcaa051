//! Reads the inputs (files, YAML, CRDs, the manifest) into trees whose values have spans.

pub mod crd;
pub mod input;
pub mod manifest;
pub mod names;
pub mod schema;
pub(crate) mod server_rules;
mod unreadable;
mod upgrade;
pub mod yaml;
