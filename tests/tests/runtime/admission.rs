//! Admission webhooks that a real API server calls.

#[path = "admission/certificates.rs"]
mod certificates;
#[path = "admission/client_identity.rs"]
mod client_identity;
#[path = "admission/clients.rs"]
mod clients;
#[path = "admission/configuration.rs"]
mod configuration;
#[path = "admission/fixture.rs"]
pub(crate) mod fixture;
#[path = "admission/generated_manifests.rs"]
mod generated_manifests;
#[path = "admission/host_detection.rs"]
mod host_detection;
#[path = "admission/indices.rs"]
mod indices;
#[path = "admission/reviews.rs"]
mod reviews;
#[path = "admission/selections.rs"]
mod selections;
