//! The limits of the webhook server.

use std::time::Duration;

/// How much one client, and all clients together, may use of the webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookLimits {
    /// The size of one admission review. The API server stores objects of up to about 1.5 MiB, and
    /// a review has two of them, with whitespace.
    pub body_bytes: usize,
    /// The size of all reviews that are being read or answered.
    pub total_bytes: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a client may take to send a review.
    pub body: Duration,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long reviews may take to finish when the operator stops.
    pub drain: Duration,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self {
            body_bytes: 7 * 1024 * 1024,
            total_bytes: 64 * 1024 * 1024,
            connections: 1024,
            handshake: Duration::from_secs(10),
            body: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            drain: Duration::from_secs(10),
        }
    }
}
