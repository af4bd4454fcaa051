//! Admission webhooks: served over HTTPS, and configured in the cluster by the operator itself.
//!
//! The defaults are enough for most operators. In a pod, the operator serves behind the Service
//! that `kopf-gen` emits, with certificates that it creates, keeps in a Secret and rotates. On a
//! developer's machine, it serves on loopback, or on an address that the local cluster reaches.
//! [`Webhooks`] has options for everything else.

mod authority_source;
mod automatic_server;
mod certificate_set;
mod certificates;
mod configuration_manager;
mod connection;
mod http_request;
mod issue_certificate;
mod limits;
mod open_connections;
mod options;
mod reviewer;
pub(crate) mod running_webhooks;
mod secret;
pub(crate) mod selected_kinds;
mod server;
mod tls;
mod tunnel;
mod webhook_server;

pub use kopf_core::admission::configuration::{Address, ClientConfig};
pub use kopf_core::admission::rotation::RotationPolicy;

pub use self::authority_source::AuthoritySource;
pub use self::certificates::Certificates;
pub use self::limits::WebhookLimits;
pub use self::options::Webhooks;
pub(crate) use self::options::{ConfigurationOwner, ServerChoice};
pub use self::reviewer::{ReviewError, Reviewer};
pub use self::server::{AdvertisedAddress, Protocol, Server};
pub use self::tls::ClientVerification;
pub use self::tunnel::Tunnel;
pub use self::webhook_server::{ClientConfigs, ServeError, WebhookServer, WebhookSession};
