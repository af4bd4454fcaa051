//! Admission webhooks: the real API server asks them, and does as it is told.

#[path = "admission/callers.rs"]
mod callers;
#[path = "admission/certificates.rs"]
mod certificates;
#[path = "admission/clients.rs"]
mod clients;
#[path = "admission/configuration.rs"]
mod configuration;
#[path = "admission/emitted.rs"]
mod emitted;
#[path = "admission/hall.rs"]
pub(crate) mod hall;
#[path = "admission/indices.rs"]
mod indices;
#[path = "admission/places.rs"]
mod places;
#[path = "admission/reviews.rs"]
mod reviews;
