//! Measures the generated types over a folder of CustomResourceDefinitions.

pub mod cli;
pub mod command_cost;
pub mod corpus;
pub mod defaulting;
pub mod definition;
pub mod difference;
pub mod format;
pub mod generated;
pub mod kopium;
pub mod pattern;
pub mod rejected_fields;
pub mod roundtrip;
pub mod schema;
pub mod scratch_crate;
pub mod synthesis;
pub mod validation;
