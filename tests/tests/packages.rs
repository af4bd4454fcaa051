//! What leaves this repository: the packages of the crates, and the image of an operator.

#[path = "packages/ci.rs"]
mod ci;
#[path = "packages/crates.rs"]
mod crates;
#[path = "packages/dev.rs"]
mod dev;
#[path = "packages/helm.rs"]
mod helm;
#[path = "packages/image.rs"]
mod image;
#[path = "packages/monitoring.rs"]
mod monitoring;
#[path = "packages/upgrade.rs"]
mod upgrade;
