//! The connection to the API server: authentication, discovery, and requests for one resource.

pub(crate) mod answer;
pub(crate) mod authentication;
pub(crate) mod backoff;
pub(crate) mod discovery;
pub(crate) mod log_text;
pub(crate) mod requests;
pub(crate) mod resource;
pub(crate) mod shown_change;
