//! What can be tuned, with the defaults that suit most operators.

mod persistence;
pub mod storage;

use std::time::Duration;

use kopf_core::election::LeaseTimings;
use kopf_core::lifecycle::Lifecycle;
use kopf_core::peering::Ties;
use kopf_core::persistence::Persistence;
use kopf_core::posting::EventLimits;

pub use self::persistence::{DiffBaseStore, PersistenceSettings, ProgressStore};

/// All settings of an operator.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How the operator talks to the API server.
    pub networking: NetworkingSettings,
    /// How objects are listed and watched.
    pub watching: WatchingSettings,
    /// How namespaces are looked for.
    pub scanning: ScanningSettings,
    /// How many objects are worked on at once.
    pub queueing: QueueingSettings,
    /// How handlers are run.
    pub execution: ExecutionSettings,
    /// How daemons and timers start and stop.
    pub background: BackgroundSettings,
    /// Where facts are kept on objects; [`PersistenceSettings`] make it of a few words.
    pub persistence: Persistence,
    /// What is posted as Kubernetes events.
    pub posting: PostingSettings,
    /// How the operator stops.
    pub shutdown: ShutdownSettings,
    /// How the operator tells how it is.
    pub health: HealthSettings,
}

/// How the operator talks to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkingSettings {
    /// How long the server may take to answer a request about handled objects. One that it does not
    /// answer in time is made again.
    pub request_timeout: Duration,
    /// How long a connection may take to be opened, unless the operator was given a client.
    pub connect_timeout: Duration,
}

/// How objects are listed and watched.
#[derive(Debug, Clone)]
pub struct WatchingSettings {
    /// Objects per page of the initial list.
    pub page_size: u32,
    /// The server sends a sign of life about once a minute; a longer silence is a dead connection.
    pub inactivity_timeout: Duration,
    /// The server ends a watch after this time up to twice of it, and it is opened anew.
    pub server_timeout: Duration,
    /// The first pause after a failure; it grows with each further one.
    pub reconnect_backoff: Duration,
    /// The longest pause between two attempts.
    pub longest_backoff: Duration,
}

/// How namespaces are looked for.
#[derive(Debug, Clone, Default)]
pub struct ScanningSettings {
    /// Whether they are not: then of the patterns of a scope only those that are names count.
    pub disabled: bool,
}

/// How many objects are worked on at once.
#[derive(Debug, Clone)]
pub struct QueueingSettings {
    /// Objects whose handling began recently. Few are better: connections are used again.
    pub worker_limit: usize,
    /// A handler that takes longer than this is waiting for something, and no longer counts.
    pub worker_patience: Duration,
    /// How much memory objects may take while they wait, if nobody needs each of their events.
    pub waiting_bytes: usize,
    /// Pauses after one, two, three… failures in a row to handle an object, not counting handlers'.
    pub error_delays: Vec<Duration>,
}

/// How handlers are run.
#[derive(Debug, Clone)]
pub struct ExecutionSettings {
    /// Which of several handlers run first, and how many before the next write.
    pub lifecycle: Lifecycle,
    /// The pause after an arbitrary error, unless the handler says otherwise.
    pub default_backoff: Duration,
}

/// How daemons and timers start and stop.
#[derive(Debug, Clone)]
pub struct BackgroundSettings {
    /// How often it is told that a daemon does not stop, unless the daemon says otherwise.
    pub cancellation_polling: Duration,
    /// The first ticks of many timers that start together, as they do with the operator, are
    /// spread over their interval, but over no more than this time; zero lets all tick at once.
    pub initial_spread: Duration,
}

/// What is posted as Kubernetes events.
#[derive(Debug, Clone)]
pub struct PostingSettings {
    /// Whether anything is.
    pub enabled: bool,
    /// The least level of what is posted.
    pub level: PostingLevel,
    /// What is told about calls of handlers.
    pub progress: ProgressPosting,
    /// Whether log lines of handlers are posted on the object that they are about.
    pub loggers: bool,
    /// Who reports, as the events name it.
    pub reporting_component: String,
    /// Which instance of it.
    pub reporting_instance: String,
    /// What the names of events begin with.
    pub event_name_prefix: String,
    /// Requests that the events of one object may cause at once.
    pub burst: u32,
    /// The time after which the events of one object may cause one more request.
    pub refill: Duration,
    /// Events that may wait to be sent; beyond that the oldest are dropped.
    pub backlog: usize,
    /// Pauses before an event is sent again; after the last one it is dropped.
    pub error_backoffs: Vec<Duration>,
}

/// How serious something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PostingLevel {
    /// Of interest to whoever looks for a mistake.
    Debug,
    /// As it should be.
    Info,
    /// Needs attention.
    Warning,
    /// Failed.
    Error,
}

/// What is told about calls of handlers in Kubernetes events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgressPosting {
    /// Nothing.
    Nothing,
    /// That a call failed.
    Failures,
    /// Also that one succeeded, and that all are done.
    Everything,
}

/// How the operator stops.
#[derive(Debug, Clone)]
pub struct ShutdownSettings {
    /// How long handlers that run may take to finish.
    pub grace: Duration,
    /// How long the last Kubernetes events may take to be posted after that.
    pub posting_grace: Duration,
    /// By when cleanup handlers must be done, from the moment that the operator was asked to stop.
    pub deadline: Duration,
}

/// How the operator tells how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSettings {
    /// How late a part of the operator may be before liveness fails. A handler that blocks the
    /// threads of the runtime for longer makes Kubernetes restart the operator.
    pub stuck_after: Duration,
    /// How long the answer of probe handlers is given to others who ask.
    pub probe_cache: Duration,
}

/// How the operator gets along with other operators on the same objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeeringSettings {
    /// Whether it looks for others at all.
    pub mode: PeeringMode,
    /// The name of the `ClusterKopfPeering` or the `KopfPeering` objects by which they meet.
    pub name: String,
    /// The operator with the highest priority goes ahead, all others pause.
    pub priority: i64,
    /// How long others believe that this operator is alive after they last heard of it; whole
    /// seconds.
    pub lifetime: Duration,
    /// Whether signs of life are kept out of the log.
    pub stealth: bool,
    /// What happens among operators of the same priority.
    pub ties: Ties,
}

/// Whether an operator looks for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeeringMode {
    /// It does not, and never pauses.
    Standalone,
    /// It does if the peering object exists.
    Auto,
    /// It pauses until the peering object exists.
    Mandatory,
}

/// How one of several replicas is made the only one that acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElectionSettings {
    /// The name of the `Lease`; that of the operator if left out.
    pub name: Option<String>,
    /// The namespace of the `Lease`; that of the operator's pod if left out.
    pub namespace: Option<String>,
    /// A leader that is not heard of for so long is replaced; whole seconds.
    pub lease_duration: Duration,
    /// A leader that cannot renew its lease for so long stops; shorter than the lease.
    pub renew_deadline: Duration,
    /// The pause between renewals.
    pub retry_period: Duration,
}

impl Default for PeeringSettings {
    fn default() -> Self {
        Self {
            mode: PeeringMode::Auto,
            name: "default".to_owned(),
            priority: 0,
            lifetime: Duration::from_secs(60),
            stealth: false,
            ties: Ties::default(),
        }
    }
}

impl PeeringSettings {
    /// Taking part in a peering that has to exist.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            mode: PeeringMode::Mandatory,
            name: name.into(),
            ..Self::default()
        }
    }

    /// Running as if there was nobody else.
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
        let terms = LeaseTimings::default();
        Self {
            name: None,
            namespace: None,
            lease_duration: terms.duration,
            renew_deadline: terms.renew_deadline,
            retry_period: terms.retry_period,
        }
    }
}

impl LeaderElectionSettings {
    pub(crate) fn terms(&self) -> LeaseTimings {
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
            worker_limit: 16,
            worker_patience: Duration::from_secs(1),
            waiting_bytes: 64 * 1024 * 1024,
            error_delays: fibonacci.map(Duration::from_secs).to_vec(),
        }
    }
}

impl QueueingSettings {
    /// The pause after a failure that came after so many others; the last one repeats.
    pub(crate) fn error_delay(&self, failures: u32) -> Duration {
        let step = usize::try_from(failures).unwrap_or(usize::MAX);
        let delay = self.error_delays.get(step).or(self.error_delays.last());
        delay.copied().unwrap_or(Duration::from_secs(1))
    }
}

impl Default for ExecutionSettings {
    fn default() -> Self {
        Self {
            lifecycle: Lifecycle::default(),
            default_backoff: Duration::from_secs(60),
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
    /// Who posts the log lines of handlers wants those of the runtime, too.
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

impl Default for ShutdownSettings {
    fn default() -> Self {
        Self {
            // Kubernetes kills a pod 30 seconds after asking it to stop.
            grace: Duration::from_secs(25),
            posting_grace: Duration::from_secs(2),
            deadline: Duration::from_secs(29),
        }
    }
}
