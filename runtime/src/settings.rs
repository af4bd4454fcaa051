//! The settings of an operator, with defaults that suit most.

mod persistence;
pub mod storage;

use std::time::Duration;

use kopf_core::election::LeaseTimings;
use kopf_core::lifecycle::Lifecycle;
use kopf_core::peering::Ties;
use kopf_core::persistence::Persistence;
use kopf_core::posting::EventLimits;
use kopf_core::shutdown::StopTimes;
use tokio::sync::Semaphore;

pub use self::persistence::{DiffBaseStore, PersistenceSettings, ProgressStore};

/// All settings of an operator.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Timeouts of requests to the API server.
    pub networking: NetworkingSettings,
    /// Lists and watches of objects.
    pub watching: WatchingSettings,
    /// The watch of namespaces and of kinds that are defined later.
    pub scanning: ScanningSettings,
    /// The limits of the queue.
    pub queueing: QueueingSettings,
    /// The order and the retries of handlers.
    pub execution: ExecutionSettings,
    /// The start and the stop of daemons and timers.
    pub background: BackgroundSettings,
    /// The storage of progress and of the last handled state; [`PersistenceSettings`] convert to it.
    pub persistence: Persistence,
    /// The Kubernetes events that the operator posts.
    pub posting: PostingSettings,
    /// The time limits of a stop.
    pub shutdown: ShutdownSettings,
    /// The health endpoint.
    pub health: HealthSettings,
}

/// A setting with a value with which no operator works.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` is {value}, and must be {bound}")]
pub struct InvalidSetting {
    setting: &'static str,
    value: String,
    bound: &'static str,
}

/// Timeouts of requests to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkingSettings {
    /// The time that the API server has to respond to a request about handled objects. After that,
    /// the operator repeats the request.
    pub request_timeout: Duration,
    /// The time to open a connection, unless the operator was given a client.
    pub connect_timeout: Duration,
}

/// Lists and watches of objects.
#[derive(Debug, Clone)]
pub struct WatchingSettings {
    /// Objects per page of the initial list.
    pub page_size: u32,
    /// The API server sends a bookmark about once a minute; after a longer silence, the operator
    /// takes the connection for dead.
    pub inactivity_timeout: Duration,
    /// The API server ends a watch after this time up to twice of it, and the operator opens the
    /// next one.
    pub server_timeout: Duration,
    /// The first pause after a failure; it grows with each further one.
    pub reconnect_backoff: Duration,
    /// The longest pause between two attempts.
    pub longest_backoff: Duration,
}

/// The watch of namespaces and of kinds that are defined later.
#[derive(Debug, Clone, Default)]
pub struct ScanningSettings {
    /// Whether the operator watches neither: then of the namespace patterns only names count.
    pub disabled: bool,
}

/// The limits of the queue.
#[derive(Debug, Clone)]
pub struct QueueingSettings {
    /// At most this many objects are processed at once, and at most this many timers are called at
    /// once. An object counts as long as its handlers run and their effects are written, and not
    /// while it waits for a retry. None: handlers that hang block no other object.
    pub worker_limit: Option<usize>,
    /// Without a `worker_limit`, objects begin 16 at a time, and one that takes longer than this no
    /// longer counts.
    pub worker_patience: Duration,
    /// The memory for the text of objects that wait in the queue, if no event handler needs each
    /// watch event, and of objects that wait for a retry, which take at most half of it.
    pub waiting_bytes: usize,
    /// Pauses after one, two, three… failures in a row to process an object; failures of handlers
    /// do not count. Without any, the operator tries again at once, ten times a second at most.
    pub error_delays: Vec<Duration>,
}

/// The order and the retries of handlers.
#[derive(Debug, Clone)]
pub struct ExecutionSettings {
    /// The order of handlers, and the number of handlers that run before the next write.
    pub lifecycle: Lifecycle,
    /// The pause after an arbitrary error, unless the handler declares another.
    pub default_backoff: Duration,
    /// The number of threads for [blocking work](crate::ChangeContext::blocking) of handlers; the
    /// work of others waits. It counts for [`Operator::main`](crate::Operator::main), which reads it
    /// before any startup handler runs: embedded operators use the threads of their runtime.
    pub blocking_threads: usize,
}

/// The start and the stop of daemons and timers.
#[derive(Debug, Clone)]
pub struct BackgroundSettings {
    /// The interval at which the log says that a daemon does not stop, unless the daemon declares
    /// another.
    pub cancellation_polling: Duration,
    /// The first calls of timers that start together, as they do with the operator, are spread over
    /// their interval, but over no more than this time; zero calls all at once.
    pub initial_spread: Duration,
}

/// The Kubernetes events that the operator posts.
#[derive(Debug, Clone)]
pub struct PostingSettings {
    /// Whether events are posted.
    pub enabled: bool,
    /// The lowest level that is posted.
    pub level: PostingLevel,
    /// The outcomes of handler calls that are posted.
    pub progress: ProgressPosting,
    /// Whether log lines of handlers are posted as events of their object.
    pub loggers: bool,
    /// The `reportingComponent` of events.
    pub reporting_component: String,
    /// The `reportingInstance` of events.
    pub reporting_instance: String,
    /// The prefix of the names of events.
    pub event_name_prefix: String,
    /// The number of requests that the events of one object may cause at once.
    pub burst: u32,
    /// The time after which the events of one object may cause one more request.
    pub refill: Duration,
    /// The number of events that may wait to be sent; beyond it, the oldest are dropped.
    pub backlog: usize,
    /// Pauses before an event is sent again; after the last one it is dropped.
    pub error_backoffs: Vec<Duration>,
}

/// The level of an event or log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PostingLevel {
    /// For debugging.
    Debug,
    /// Expected.
    Info,
    /// Needs attention.
    Warning,
    /// A failure.
    Error,
}

/// The outcomes of handler calls that are posted as Kubernetes events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgressPosting {
    /// None.
    Nothing,
    /// Failures only.
    Failures,
    /// Also successes, and the end of a handling cycle.
    Everything,
}

/// The time limits of a stop.
#[derive(Debug, Clone)]
pub struct ShutdownSettings {
    /// The time for running handlers to finish.
    pub grace: Duration,
    /// The time to post the last Kubernetes events after that.
    pub posting_grace: Duration,
    /// The time for the whole stop, including cleanup handlers; more if the other two need it.
    pub deadline: Duration,
}

/// The health endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSettings {
    /// The delay of a part's heartbeat after which liveness fails. A handler that blocks the threads
    /// of the runtime for longer makes Kubernetes restart the operator.
    pub stuck_after: Duration,
    /// The time for which the results of probe handlers are reused.
    pub probe_cache: Duration,
}

/// The peering with other operators that handle the same objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeeringSettings {
    /// Whether the operator takes part in a peering.
    pub mode: PeeringMode,
    /// The name of the `ClusterKopfPeering` object or of the `KopfPeering` objects.
    pub name: String,
    /// Whether the operator joins the `ClusterKopfPeering` also if it serves single namespaces.
    pub clusterwide: bool,
    /// The operator with the highest priority runs, all others pause.
    pub priority: i64,
    /// The time after which the record of this operator expires, unless it is renewed; whole
    /// seconds.
    pub lifetime: Duration,
    /// Whether keep-alives are left out of the log.
    pub stealth: bool,
    /// The rule among operators of the same priority.
    pub ties: Ties,
}

/// Whether an operator takes part in a peering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeeringMode {
    /// It does not, and never pauses.
    Standalone,
    /// It does if the peering object exists.
    Auto,
    /// It pauses until the peering object exists.
    Mandatory,
    /// It creates the peering object if there is none.
    Created,
}

/// The leader election, by which one of several replicas handles objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElectionSettings {
    /// The name of the `Lease`; by default that of the operator.
    pub name: Option<String>,
    /// The namespace of the `Lease`; by default that of the operator's pod.
    pub namespace: Option<String>,
    /// The time after which another replica takes over from a leader that does not renew the lease;
    /// whole seconds.
    pub lease_duration: Duration,
    /// The time after which a leader that cannot renew the lease pauses; shorter than
    /// `lease_duration`.
    pub renew_deadline: Duration,
    /// The pause between renewals.
    pub retry_period: Duration,
}

/// No machine has more threads for blocking work.
pub(crate) const MOST_BLOCKING_THREADS: usize = 65_536;

impl Settings {
    /// Looks for values with which the operator would do nothing, or would do it without a pause.
    pub(crate) fn check(&self) -> Result<(), InvalidSetting> {
        if let Some(limit) = self.queueing.worker_limit
            && !(1..=Semaphore::MAX_PERMITS).contains(&limit)
        {
            return Err(InvalidSetting {
                setting: "queueing.worker_limit",
                value: limit.to_string(),
                bound: "a number of workers, at least 1",
            });
        }
        let threads = self.execution.blocking_threads;
        if !(1..=MOST_BLOCKING_THREADS).contains(&threads) {
            return Err(InvalidSetting {
                setting: "execution.blocking_threads",
                value: threads.to_string(),
                bound: "a number of threads, from 1 to 65536",
            });
        }
        let durations = [
            (
                "networking.request_timeout",
                self.networking.request_timeout,
            ),
            (
                "watching.inactivity_timeout",
                self.watching.inactivity_timeout,
            ),
            (
                "watching.reconnect_backoff",
                self.watching.reconnect_backoff,
            ),
            ("watching.longest_backoff", self.watching.longest_backoff),
            (
                "background.cancellation_polling",
                self.background.cancellation_polling,
            ),
        ];
        match durations.into_iter().find(|(_, value)| value.is_zero()) {
            None => Ok(()),
            Some((setting, _)) => Err(InvalidSetting {
                setting,
                value: "zero".to_owned(),
                bound: "longer",
            }),
        }
    }
}

impl Default for PeeringSettings {
    fn default() -> Self {
        Self {
            mode: PeeringMode::Auto,
            name: "default".to_owned(),
            clusterwide: false,
            priority: 0,
            lifetime: Duration::from_secs(60),
            stealth: false,
            ties: Ties::default(),
        }
    }
}

impl PeeringSettings {
    /// Settings for a peering that has to exist.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            mode: PeeringMode::Mandatory,
            name: name.into(),
            ..Self::default()
        }
    }

    /// Settings for a peering that this operator creates if it does not exist.
    #[must_use]
    pub fn created(name: impl Into<String>) -> Self {
        Self {
            mode: PeeringMode::Created,
            ..Self::named(name)
        }
    }

    /// Settings without peering.
    #[must_use]
    pub fn standalone() -> Self {
        Self {
            mode: PeeringMode::Standalone,
            ..Self::default()
        }
    }
}

impl Default for LeaderElectionSettings {
    fn default() -> Self {
        let timings = LeaseTimings::default();
        Self {
            name: None,
            namespace: None,
            lease_duration: timings.duration,
            renew_deadline: timings.renew_deadline,
            retry_period: timings.retry_period,
        }
    }
}

impl LeaderElectionSettings {
    pub(crate) fn timings(&self) -> LeaseTimings {
        LeaseTimings {
            duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
        }
    }
}

impl Default for NetworkingSettings {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(30),
        }
    }
}

impl Default for WatchingSettings {
    fn default() -> Self {
        Self {
            page_size: 250,
            inactivity_timeout: Duration::from_secs(70),
            server_timeout: Duration::from_secs(300),
            reconnect_backoff: Duration::from_millis(100),
            longest_backoff: Duration::from_secs(30),
        }
    }
}

impl Default for QueueingSettings {
    fn default() -> Self {
        let fibonacci = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610];
        Self {
            worker_limit: None,
            worker_patience: Duration::from_secs(1),
            waiting_bytes: 64 * 1024 * 1024,
            error_delays: fibonacci.map(Duration::from_secs).to_vec(),
        }
    }
}

impl Default for ExecutionSettings {
    fn default() -> Self {
        Self {
            lifecycle: Lifecycle::default(),
            default_backoff: Duration::from_secs(60),
            blocking_threads: 512,
        }
    }
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self {
            cancellation_polling: Duration::from_secs(60),
            initial_spread: Duration::from_secs(60),
        }
    }
}

impl Default for PostingSettings {
    fn default() -> Self {
        let limits = EventLimits::default();
        Self {
            enabled: true,
            level: PostingLevel::Info,
            progress: ProgressPosting::Failures,
            loggers: false,
            reporting_component: "kopf".to_owned(),
            reporting_instance: "dev".to_owned(),
            event_name_prefix: "kopf-event-".to_owned(),
            burst: limits.burst,
            refill: limits.refill,
            backlog: limits.waiting,
            error_backoffs: limits.retries,
        }
    }
}

impl PostingSettings {
    /// With the log lines of handlers, those of the runtime about the same calls are posted, too.
    pub(crate) fn wanted_progress(&self) -> ProgressPosting {
        if self.loggers {
            ProgressPosting::Everything
        } else {
            self.progress
        }
    }

    pub(crate) fn limits(&self) -> EventLimits {
        EventLimits {
            burst: self.burst,
            refill: self.refill,
            waiting: self.backlog,
            retries: self.error_backoffs.clone(),
            ..EventLimits::default()
        }
    }
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            stuck_after: Duration::from_secs(30),
            probe_cache: Duration::from_secs(10),
        }
    }
}

impl ShutdownSettings {
    /// The time for the whole stop.
    pub(crate) fn total(&self) -> Duration {
        let times = StopTimes {
            grace: self.grace,
            posting_grace: self.posting_grace,
            deadline: self.deadline,
        };
        times.total()
    }
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        let StopTimes {
            grace,
            posting_grace,
            deadline,
        } = StopTimes::default();
        Self {
            grace,
            posting_grace,
            deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: fn(&mut Settings)) -> Option<String> {
        let mut settings = Settings::default();
        change(&mut settings);
        settings.check().err().map(|error| error.to_string())
    }

    #[test]
    fn settings_with_which_no_operator_works_are_refused() {
        assert_eq!(refused(|_| {}), None);
        let none = "`queueing.worker_limit` is 0, and must be a number of workers, at least 1";
        assert_eq!(
            refused(|it| it.queueing.worker_limit = Some(0)).as_deref(),
            Some(none)
        );
        assert!(refused(|it| it.queueing.worker_limit = Some(usize::MAX)).is_some());
        assert!(refused(|it| it.execution.blocking_threads = 0).is_some());
        assert!(refused(|it| it.execution.blocking_threads = usize::MAX).is_some());
        let zero = "`watching.inactivity_timeout` is zero, and must be longer";
        assert_eq!(
            refused(|it| it.watching.inactivity_timeout = Duration::ZERO).as_deref(),
            Some(zero)
        );
        assert!(refused(|it| it.background.cancellation_polling = Duration::ZERO).is_some());
    }
}
