//! Measures the generated types over a folder of real CustomResourceDefinitions.

pub mod amend;
pub mod cli;
pub mod corpus;
pub mod defaulting;
pub mod definition;
pub mod difference;
pub mod format;
pub mod generated;
pub mod kopium;
pub mod meter;
pub mod pattern;
pub mod roundtrip;
pub mod schema;
pub mod scratch;
pub mod synthesis;
pub mod validation;
