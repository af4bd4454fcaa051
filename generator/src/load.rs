//! Reads texts into trees that remember where each value stood.

pub mod crd;
pub mod input;
pub mod manifest;
pub mod schema;
mod upgrade;
pub mod yaml;
