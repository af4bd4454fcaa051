//! Admission webhooks: the real API server asks them, and does as it is told.

#[path = "admission/certificates.rs"]
mod certificates;
#[path = "admission/clients.rs"]
mod clients;
#[path = "admission/configuration.rs"]
mod configuration;
#[path = "admission/hall.rs"]
pub(crate) mod hall;
#[path = "admission/indices.rs"]
mod indices;
#[path = "admission/reviews.rs"]
mod reviews;
