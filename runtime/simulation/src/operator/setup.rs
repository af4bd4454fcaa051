//! The handlers of simulated operators, and how their functions behave.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kopf_core::background::stopping::StopPolicy;
use kopf_core::background::timing::TimerTiming;
use kopf_core::handler::registry::Registry;
use kopf_core::handler::retry::RetryPolicy;
use kopf_core::handler::watch_selectors::WatchSelectors;
use kopf_core::handler::{HandlerSpec, Trigger};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::object::path::FieldPath;
use kopf_core::outcome::{HandlerFailure, Outcome};
use kopf_core::persistence::Persistence;
use kopf_core::progress::status::StatusProgress;
use serde_json::{Value, json};

use super::label::{LABEL, labelled};
use super::sub_handlers::{FAMILY, PARENT, is_parent};

/// The pauses after failures of the runtime itself.
pub(crate) const ERROR_DELAYS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// The timer that is called every hundred years.
const RARE: &str = "rare";

/// The pause after an arbitrary error of a handler.
pub(crate) const BACKOFF: Duration = Duration::from_secs(5);

/// The handlers of an operator, with everything that a machine borrows.
#[derive(Debug)]
pub(crate) struct OperatorSetup {
    pub(crate) registry: Arc<Registry>,
    pub(crate) persistence: Arc<Persistence>,
    pub(crate) lifecycle: Lifecycle,
    /// Whether the kind has an endpoint for the status.
    pub(crate) status_endpoint: bool,
    pub(crate) selectors: WatchSelectors,
    pub(crate) needs_each_event: bool,
    pub(crate) background: Vec<BackgroundSpec>,
    pub(crate) has_index: bool,
    /// Whether records are in the status, and not in annotations.
    pub(crate) progress_in_status: bool,
}

/// A daemon or timer.
#[derive(Debug)]
pub(crate) struct BackgroundSpec {
    pub(crate) spec: Arc<HandlerSpec>,
    /// None for a daemon.
    pub(crate) timing: Option<TimerTiming>,
    pub(crate) stopping: StopPolicy,
}

/// How the functions of a history behave; zero is the plainest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    /// How often calls fail, from 0 to 3.
    pub(crate) failures: u32,
    /// How long calls take, from 0 to 3.
    pub(crate) durations: u32,
    /// How often calls patch their object, from 0 to 3.
    pub(crate) patches: u32,
    /// How often calls change the spec and the labels of their object, from 0 to 3.
    pub(crate) own_changes: u32,
    /// How often parts of the operator are slow, from 0 to 3.
    pub(crate) slowness: u32,
    /// The highest number of workers; none without a limit.
    pub(crate) worker_limit: Option<usize>,
    /// Mixed into all of these.
    pub(crate) salt: u32,
}

/// The end of a call of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEnding {
    Succeeds,
    Delivers,
    RetriesAtOnce,
    RetriesLater,
    FailsSomehow,
    FailsForGood,
}

/// The patch of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallPatch {
    None,
    /// The same value each time.
    Status,
    /// One more entry in a list.
    Entry,
    /// A field of the spec that follows another one.
    Spec,
    /// The label that some handlers ask for, which follows the spec.
    Label,
}

// === impl OperatorSetup ===

impl OperatorSetup {
    /// All setups; they live as long as the program, so that machines can borrow them.
    pub(crate) fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<OperatorSetup>> = OnceLock::new();
        ALL.get_or_init(|| {
            let sets = handler_sets().into_iter().chain(parent_sets());
            let sets = sets.chain([field_set()]).chain(family_sets());
            let sets = sets.chain([rare_set()]).enumerate();
            let both = sets.flat_map(|(number, specs)| {
                let plain = Self::new(specs.clone(), number, false);
                [plain, Self::new(specs, number, true)]
            });
            both.collect()
        })
    }

    fn new(specs: Vec<HandlerSpec>, number: usize, unusual: bool) -> Self {
        let registry = Registry::new(specs).expect("declarations are valid");
        let has = |trigger: Trigger| registry.handlers().iter().any(|it| it.trigger == trigger);
        let background = registry.background_handlers().map(|spec| BackgroundSpec {
            spec: Arc::clone(spec),
            timing: (spec.trigger == Trigger::Timer).then(|| timing(spec, number)),
            stopping: StopPolicy {
                backoff: Some(Duration::from_secs(2)),
                timeout: Some(Duration::from_secs(5)),
                polling: None,
            },
        });
        let mut persistence = Persistence::default();
        if unusual {
            persistence.progress = Arc::new(StatusProgress::default());
        }
        let lifecycles = [Lifecycle::Asap, Lifecycle::AllAtOnce, Lifecycle::OneByOne];
        Self {
            selectors: WatchSelectors::derive(&registry),
            needs_each_event: has(Trigger::Event),
            has_index: has(Trigger::Index),
            progress_in_status: unusual,
            background: background.collect(),
            registry: Arc::new(registry),
            persistence: Arc::new(persistence),
            lifecycle: lifecycles[number % lifecycles.len()].clone(),
            status_endpoint: number.is_multiple_of(2) || unusual,
        }
    }

    /// Whether an operator with these handlers watches an object.
    pub(crate) fn watches(&self, object: &Value) -> bool {
        self.selectors.is_empty() || !object["metadata"]["labels"][LABEL].is_null()
    }
}

fn timing(spec: &HandlerSpec, number: usize) -> TimerTiming {
    match number % 2 {
        _ if spec.id.as_str() == RARE => TimerTiming::Every {
            interval: Duration::from_secs(100 * 365 * 24 * 3600),
            sharp: false,
            idle: None,
        },
        0 => TimerTiming::Idle(Duration::from_secs(20)),
        _ => TimerTiming::Every {
            interval: Duration::from_secs(100),
            sharp: number.is_multiple_of(3),
            idle: None,
        },
    }
}

fn handler_sets() -> Vec<Vec<HandlerSpec>> {
    let spec = |id: &str, trigger: Trigger| HandlerSpec::new(id, trigger);
    let (a, b) = (FieldPath::from("spec.a"), FieldPath::from("spec.b"));
    let delete = || spec("delete", Trigger::Delete { optional: false });
    let optional = || spec("delete", Trigger::Delete { optional: true });
    let resume = || spec("resume", Trigger::Resume { deleted: false });
    let mut impatient = spec("update", Trigger::Update);
    impatient.policy = RetryPolicy {
        retries: Some(2),
        ..RetryPolicy::default()
    };
    vec![
        vec![
            spec("create", Trigger::Create),
            spec("update", Trigger::Update),
        ],
        vec![
            spec("create", Trigger::Create),
            spec("create2", Trigger::Create),
            spec("update", Trigger::Update),
            HandlerSpec::for_field("field", Trigger::Field, a.clone()),
        ],
        vec![
            spec("create", Trigger::Create),
            spec("update", Trigger::Update),
            delete(),
        ],
        vec![
            delete(),
            resume(),
            HandlerSpec::for_field("update", Trigger::Update, b),
        ],
        vec![
            spec("create", Trigger::Create),
            spec("daemon", Trigger::Daemon),
        ],
        vec![
            spec("update", Trigger::Update),
            spec("timer", Trigger::Timer),
            delete(),
        ],
        vec![
            spec("create", Trigger::Create),
            spec("event", Trigger::Event),
            impatient,
        ],
        vec![
            labelled("create", Trigger::Create),
            labelled("update", Trigger::Update),
        ],
        vec![
            spec("index", Trigger::Index),
            spec("create", Trigger::Create),
            HandlerSpec::for_field("update", Trigger::Update, a),
            delete(),
        ],
        vec![
            spec("both", Trigger::Create),
            spec("both", Trigger::Update),
            resume(),
            optional(),
        ],
        vec![
            labelled("daemon", Trigger::Daemon),
            spec("timer", Trigger::Timer),
            labelled("delete", Trigger::Delete { optional: false }),
            spec("update", Trigger::Update),
        ],
        vec![
            spec("event", Trigger::Event),
            labelled("daemon", Trigger::Daemon),
            spec("update", Trigger::Update),
            spec("create", Trigger::Create),
            delete(),
        ],
    ]
}

/// Handlers that have sub-handlers.
fn parent_sets() -> Vec<Vec<HandlerSpec>> {
    let spec = |id: &str, trigger: Trigger| HandlerSpec::new(id, trigger);
    vec![
        vec![
            spec(PARENT, Trigger::Create),
            spec(PARENT, Trigger::Update),
            spec("update", Trigger::Update),
        ],
        vec![
            spec("create", Trigger::Create),
            HandlerSpec::for_field(PARENT, Trigger::Field, FieldPath::from("spec.a")),
            spec("delete", Trigger::Delete { optional: false }),
        ],
    ]
}

/// Handlers whose sub-handlers have filters, and sub-handlers of their own.
fn family_sets() -> Vec<Vec<HandlerSpec>> {
    let spec = |id: &str, trigger: Trigger| HandlerSpec::new(id, trigger);
    vec![
        vec![spec(FAMILY, Trigger::Create), spec(FAMILY, Trigger::Update)],
        vec![
            HandlerSpec::for_field(FAMILY, Trigger::Field, FieldPath::from("spec")),
            spec("update", Trigger::Update),
        ],
    ]
}

/// Handlers that match an object only while it has a field.
fn field_set() -> Vec<HandlerSpec> {
    let a = || FieldPath::from("spec.a");
    vec![
        HandlerSpec::for_field("field", Trigger::Field, a()),
        HandlerSpec::for_field("update", Trigger::Update, a()),
    ]
}

/// A timer that is called every hundred years.
fn rare_set() -> Vec<HandlerSpec> {
    vec![
        HandlerSpec::new(RARE, Trigger::Timer),
        HandlerSpec::new("update", Trigger::Update),
    ]
}

/// The value under which the index has an object.
pub(crate) fn indexed_value(object: &Value) -> u64 {
    object["spec"]["a"].as_u64().unwrap_or_default()
}

// === impl CallEnding ===

impl CallEnding {
    /// The outcome of the call with this number.
    pub(super) fn outcome(self, number: u64) -> Outcome {
        let message = "planned".to_owned();
        Outcome::Error(match self {
            Self::Succeeds => return Outcome::Success(Value::Null),
            Self::Delivers => return Outcome::Success(json!({"number": number})),
            Self::RetriesAtOnce => HandlerFailure::Temporary {
                message,
                delay: None,
            },
            Self::RetriesLater => HandlerFailure::Temporary {
                message,
                delay: Some(Duration::from_secs(3 + number % 10)),
            },
            Self::FailsSomehow => HandlerFailure::Other { message },
            Self::FailsForGood => HandlerFailure::Permanent { message },
        })
    }
}

// === impl Behaviour ===

impl Behaviour {
    /// A number that follows from the behaviour and from these words.
    pub(crate) fn number(&self, words: impl std::hash::Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.salt, words).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether something with a level from 0 to 3 happens.
    fn happens(&self, level: u32, words: impl std::hash::Hash) -> bool {
        self.number(words) % 8 < u64::from(level)
    }

    /// The end of an attempt; each handler succeeds after some attempts.
    pub(crate) fn ending(&self, uid: &str, handler: &str, call: u64, retry: u32) -> CallEnding {
        let words = (uid, handler, call);
        let is_parent = is_parent(handler);
        let fails = retry < 3 && self.happens(self.failures, (words, "fails"));
        match (fails, self.number((words, "ends")) % 8) {
            (false, 0) if !is_parent => CallEnding::Delivers,
            (false, _) => CallEnding::Succeeds,
            (true, 0 | 1) => CallEnding::RetriesAtOnce,
            (true, 2..5) => CallEnding::RetriesLater,
            (true, 5 | 6) => CallEnding::FailsSomehow,
            (true, _) => CallEnding::FailsForGood,
        }
    }

    /// The time that a call takes; none if it ends at once.
    pub(crate) fn duration(&self, words: impl std::hash::Hash) -> Option<Duration> {
        let number = self.number((&words, "takes"));
        let millis = [20, 300, 2_000, 15_000][usize::try_from(number / 8 % 4).unwrap_or(0)];
        let takes = self.happens(self.durations, (words, "long"));
        takes.then(|| Duration::from_millis(millis))
    }

    pub(crate) fn patch(&self, uid: &str, handler: &str, call: u64) -> CallPatch {
        let words = (uid, handler, call, "patches");
        // If its patch is rejected, it fails, and its sub-handlers are not called any more.
        if is_parent(handler) {
            return CallPatch::None;
        }
        // Many handlers write the same status at each start.
        if handler == "resume" && self.patches > 0 {
            return CallPatch::Status;
        }
        if self.happens(self.own_changes, (words, "own")) {
            return match self.number((words, "part")) % 3 {
                0 | 1 => CallPatch::Spec,
                _ => CallPatch::Label,
            };
        }
        if !self.happens(self.patches, words) {
            return CallPatch::None;
        }
        match self.number((words, "kind")) % 2 {
            0 => CallPatch::Status,
            _ => CallPatch::Entry,
        }
    }

    /// Whether something inside of the operator takes longer than usual.
    pub(crate) fn is_slow(&self, words: impl std::hash::Hash) -> bool {
        self.happens(self.slowness, words)
    }
}
