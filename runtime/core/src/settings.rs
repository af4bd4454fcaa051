//! The settings of an operator, plain structs with Kopf's defaults.

use std::time::Duration;

use crate::{lifecycle::Lifecycle, persistence::Persistence};

/// All settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Queues and workers.
    pub queueing: Queueing,
    /// Calls of handlers.
    pub execution: Execution,
    /// Lists and watches.
    pub watching: Watching,
    /// Requests.
    pub networking: Networking,
    /// Daemons and timers.
    pub background: Background,
    /// Kubernetes events.
    pub posting: Posting,
    /// Other instances of the operator.
    pub peering: Peering,
    /// Facts on objects.
    pub persistence: Persistence,
    /// Waiting for our own writes.
    pub consistency: Consistency,
}

/// Queues and workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// How many objects of a kind are handled at once.
    pub worker_limit: Option<usize>,
    /// How long a worker outlives its last event.
    pub idle_timeout: Duration,
    /// How long workers may go on when the operator stops.
    pub exit_timeout: Duration,
    /// Pauses after consecutive errors of the framework on one object; the last one repeats.
    pub error_delays: Vec<Duration>,
}

/// Calls of handlers.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Delay after an arbitrary error of a handler that names none.
    pub default_backoff: Duration,
    /// Which of the due handlers run in a turn.
    pub lifecycle: Lifecycle,
}

/// Lists and watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watching {
    /// How long the server may keep a watch open.
    pub server_timeout: Option<Duration>,
    /// How long we keep a watch open.
    pub client_timeout: Option<Duration>,
    /// How long a connection may take to open.
    pub connect_timeout: Option<Duration>,
    /// The shortest pause before a list is repeated.
    pub reconnect_backoff: Duration,
    /// How long a watch may be silent, bookmarks included.
    pub inactivity_timeout: Duration,
}

/// Requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networking {
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long a connection may take to open.
    pub connect_timeout: Option<Duration>,
    /// Pauses before a failed request is repeated; afterwards it has failed.
    pub error_backoffs: Vec<Duration>,
    /// Whether the server's wish for a pause counts even if it is shorter than ours.
    pub enforce_retry_after: bool,
}

/// Daemons and timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// How often a daemon that does not stop is looked after.
    pub cancellation_polling: Duration,
    /// How long a daemon may take to exit before that counts as slow.
    pub instant_exit_timeout: Option<Duration>,
}

/// Kubernetes events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// Whether any are posted.
    pub enabled: bool,
    /// Whether log lines about an object become events of it.
    pub loggers: bool,
    /// The component that reports.
    pub reporting_component: String,
    /// The instance that reports.
    pub reporting_instance: String,
    /// The beginning of event names.
    pub event_name_prefix: String,
}

/// Other instances of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peering {
    /// The name of the peering object.
    pub name: String,
    /// Who goes on while others pause.
    pub priority: i64,
    /// How long a sign of life counts.
    pub lifetime: Duration,
    /// Whether the operator pauses if there is no peering object.
    pub mandatory: bool,
    /// Whether other instances are ignored.
    pub standalone: bool,
}

/// Waiting for our own writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consistency {
    /// How long the event of a write may take before other events count again.
    pub timeout: Duration,
}

const RETRIES: [u64; 8] = [1, 1, 2, 3, 5, 8, 13, 21];
const THROTTLES: [u64; 15] = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610];

fn seconds(values: &[u64]) -> Vec<Duration> {
    values.iter().copied().map(Duration::from_secs).collect()
}

// === impl Queueing ===

impl Default for Queueing {
    fn default() -> Self {
        Self {
            worker_limit: None,
            idle_timeout: Duration::from_secs(5),
            exit_timeout: Duration::from_secs(2),
            error_delays: seconds(&THROTTLES),
        }
    }
}

impl Queueing {
    /// The pause after so many consecutive errors.
    #[must_use]
    pub fn error_delay(&self, errors: usize) -> Option<Duration> {
        let index = errors.checked_sub(1)?;
        self.error_delays
            .get(index)
            .or(self.error_delays.last())
            .copied()
    }
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            default_backoff: Duration::from_secs(60),
            lifecycle: Lifecycle::default(),
        }
    }
}

impl Default for Watching {
    fn default() -> Self {
        Self {
            server_timeout: None,
            client_timeout: None,
            connect_timeout: None,
            reconnect_backoff: Duration::from_millis(100),
            inactivity_timeout: Duration::from_secs(70),
        }
    }
}

impl Default for Networking {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(300),
            connect_timeout: None,
            error_backoffs: seconds(&RETRIES),
            enforce_retry_after: false,
        }
    }
}

impl Default for Background {
    fn default() -> Self {
        Self {
            cancellation_polling: Duration::from_secs(60),
            instant_exit_timeout: None,
        }
    }
}

impl Default for Posting {
    fn default() -> Self {
        Self {
            enabled: true,
            loggers: false,
            reporting_component: "kopf".to_owned(),
            reporting_instance: "dev".to_owned(),
            event_name_prefix: "kopf-event-".to_owned(),
        }
    }
}

impl Default for Peering {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            priority: 0,
            lifetime: Duration::from_secs(60),
            mandatory: false,
            standalone: false,
        }
    }
}

impl Default for Consistency {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_then_stay() {
        let queueing = Queueing::default();
        assert_eq!(queueing.error_delay(0), None);
        assert_eq!(queueing.error_delay(1), Some(Duration::from_secs(1)));
        assert_eq!(queueing.error_delay(4), Some(Duration::from_secs(3)));
        assert_eq!(queueing.error_delay(15), Some(Duration::from_secs(610)));
        assert_eq!(queueing.error_delay(99), Some(Duration::from_secs(610)));
    }
}
