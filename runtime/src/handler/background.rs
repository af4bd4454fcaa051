//! The declarations of daemons and timers in generated code.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::background::stopping::StopPolicy;
use kopf_core::background::timing::TimerTiming;
use kopf_core::cause::Subject;
use kopf_core::handler::filter::{Combined, FieldFilter, FieldTest, TextTest, ValueTest, WhenTest};
use kopf_core::handler::{HandlerId, Trigger};
use serde_json::Value;

use super::{ErrorMode, HandlerDeclaration, Options, error_option, options};
use crate::handler::patch::field_path;

/// The shortest interval between two log lines about a daemon that does not stop.
const SHORTEST_POLLING: Duration = Duration::from_millis(100);

/// A daemon: a task that runs for each object while the object exists and matches the filters.
#[derive(Debug, Clone)]
#[must_use]
pub struct DaemonHandler {
    id: &'static str,
    options: Options,
    initial_delay: InitialDelay,
    stopping: StopPolicy,
}

/// A timer: a function that is called for each object in intervals.
#[derive(Debug, Clone)]
#[must_use]
pub struct TimerHandler {
    id: &'static str,
    options: Options,
    initial_delay: InitialDelay,
    timing: TimerTiming,
}

/// How long a daemon or timer waits before its first call.
#[derive(Clone)]
pub(crate) enum InitialDelay {
    Fixed(Duration),
    Computed(Arc<dyn Fn(&Value) -> Duration + Send + Sync>),
}

options!(DaemonHandler);
options!(TimerHandler);
error_option!(DaemonHandler);
error_option!(TimerHandler);

// === impl DaemonHandler ===

impl DaemonHandler {
    /// A daemon with this id.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            options: Options::default(),
            initial_delay: InitialDelay::default(),
            stopping: StopPolicy::default(),
        }
    }

    /// The time for a daemon to return after the stop signal, before it is cancelled.
    pub fn cancellation_backoff(mut self, backoff: Duration) -> Self {
        self.stopping.backoff = Some(backoff);
        self
    }

    /// The time for a cancelled daemon to end, before it is abandoned. Without this timeout, the
    /// operator neither cancels nor abandons a daemon, but waits for it.
    pub fn cancellation_timeout(mut self, timeout: Duration) -> Self {
        self.stopping.timeout = Some(timeout);
        self
    }

    /// The interval in which the operator logs that it waits for a daemon; 100 ms at least.
    pub fn cancellation_polling(mut self, polling: Duration) -> Self {
        self.stopping.polling = Some(polling.max(SHORTEST_POLLING));
        self
    }

    pub(crate) fn declare(self) -> (HandlerDeclaration, InitialDelay, StopPolicy) {
        let id = self.id();
        let declared = self.options.declare(&id, &[Trigger::Daemon]);
        (declared, self.initial_delay, self.stopping)
    }
}

// === impl TimerHandler ===

impl TimerHandler {
    /// A timer with this id and the interval between two calls.
    pub fn every(id: &'static str, interval: Duration) -> Self {
        Self::with(
            id,
            TimerTiming::Every {
                interval,
                sharp: false,
                idle: None,
            },
        )
    }

    /// A timer that is called once each time its object has not changed for so long.
    pub fn when_idle(id: &'static str, idle: Duration) -> Self {
        Self::with(id, TimerTiming::Idle(idle))
    }

    /// Measures the interval from start to start of calls, not from end to start. A timer without an
    /// interval is sharp anyway.
    pub fn sharp(mut self) -> Self {
        if let TimerTiming::Every { sharp, .. } = &mut self.timing {
            *sharp = true;
        }
        self
    }

    /// Only while the object has not changed for so long.
    pub fn idle(mut self, time: Duration) -> Self {
        match &mut self.timing {
            TimerTiming::Every { idle, .. } => *idle = Some(time),
            TimerTiming::Idle(idle) => *idle = time,
        }
        self
    }

    pub(crate) fn declare(self) -> (HandlerDeclaration, InitialDelay, TimerTiming) {
        let id = self.id();
        let declared = self.options.declare(&id, &[Trigger::Timer]);
        (declared, self.initial_delay, self.timing)
    }

    fn with(id: &'static str, timing: TimerTiming) -> Self {
        Self {
            id,
            options: Options::default(),
            initial_delay: InitialDelay::default(),
            timing,
        }
    }
}

/// The option methods that daemons and timers share.
macro_rules! background_options {
    ($handler:ident) => {
        impl $handler {
            /// Delays the first call by this time.
            pub fn initial_delay(mut self, delay: Duration) -> Self {
                self.initial_delay = InitialDelay::Fixed(delay);
                self
            }

            /// Delays the first call by a time that depends on the object.
            pub fn initial_delay_by(
                mut self,
                delay: impl Fn(&Value) -> Duration + Send + Sync + 'static,
            ) -> Self {
                self.initial_delay = InitialDelay::Computed(Arc::new(delay));
                self
            }

            /// Only objects that have this field.
            pub fn field(self, path: &str) -> Self {
                self.field_test(path, FieldTest::Any)
            }

            /// Only objects in which the value of this field passes the test.
            pub fn value(self, path: &str, test: impl Into<Combined<ValueTest>>) -> Self {
                self.field_test(path, FieldTest::Value(test.into()))
            }

            fn field_test(mut self, path: &str, test: FieldTest) -> Self {
                let path = field_path(path);
                self.options.filters.field = Some(FieldFilter { path, test });
                self
            }

            fn id(&self) -> HandlerId {
                match &self.options.filters.field {
                    Some(field) => HandlerId::of_field(self.id, &field.path),
                    None => HandlerId::new(self.id),
                }
            }
        }
    };
}

background_options!(DaemonHandler);
background_options!(TimerHandler);

// === impl InitialDelay ===

impl InitialDelay {
    pub(crate) fn of(&self, object: &Value) -> Duration {
        match self {
            Self::Fixed(delay) => *delay,
            Self::Computed(compute) => compute(object),
        }
    }
}

impl Default for InitialDelay {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

impl fmt::Debug for InitialDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(delay) => f.debug_tuple("Fixed").field(delay).finish(),
            Self::Computed(_) => f.write_str("Computed(…)"),
        }
    }
}
