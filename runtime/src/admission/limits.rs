//! The limits of the webhook server.

use std::time::Duration;

use tokio::sync::Semaphore;

/// How much one client, and all clients together, may use of the webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookLimits {
    /// The size of one admission review. The API server stores objects of up to about 1.5 MiB, and
    /// a review has two of them, with whitespace.
    pub body_bytes: usize,
    /// The size of all reviews that are being read or answered, as far as they have arrived.
    pub total_bytes: usize,
    /// Connections at the same time. When there are as many, the next one takes the place of the
    /// oldest whose client has not sent a review.
    pub connections: usize,
    /// How long a TLS handshake may take, and after it the first bytes of a request.
    pub handshake: Duration,
    /// How long a client may take to send a review.
    pub body: Duration,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long reviews may take to finish when the operator stops.
    pub drain: Duration,
}

/// Longer than any connection lasts, and short enough for any clock.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

impl WebhookLimits {
    /// The same limits, as far as clocks and semaphores can express them.
    pub(super) fn bounded(self) -> Self {
        Self {
            total_bytes: self.total_bytes.min(Semaphore::MAX_PERMITS),
            connections: self.connections.clamp(1, Semaphore::MAX_PERMITS),
            handshake: self.handshake.min(LONGEST),
            body: self.body.min(LONGEST),
            idle: self.idle.min(LONGEST),
            drain: self.drain.min(LONGEST),
            ..self
        }
    }
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
