//! A declared daemon or timer, with all that running it takes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::background::stopping::StopPolicy;
use kopf_core::handler::HandlerSpec;
use serde_json::Value;

use crate::client::requests::KindApi;
use crate::client::resource::KindSpec;
use crate::handler::memo::Memos;
use crate::health::metrics::HandlerMetrics;
use crate::process::execute::report;
use crate::registration::{RegisteredDaemon, RegisteredTimer};

/// A daemon or timer of a kind.
pub(crate) struct Duty {
    pub(crate) spec: Arc<HandlerSpec>,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: Arc<HandlerMetrics>,
    pub(crate) work: Work,
    pub(crate) resource: KindSpec,
    pub(crate) api: Arc<KindApi>,
    pub(crate) memos: Option<Arc<Memos>>,
}

/// What is to be done.
pub(crate) enum Work {
    Daemon(RegisteredDaemon),
    Timer(Arc<RegisteredTimer>),
}

impl Duty {
    pub(super) fn initial_delay(&self, object: &Value) -> Duration {
        match &self.work {
            Work::Daemon(daemon) => daemon.initial_delay.of(object),
            Work::Timer(timer) => timer.initial_delay.of(object),
        }
    }

    /// A tick that runs is waited for: there is nothing to interrupt that would not tick again.
    pub(super) fn stopping(&self) -> StopPolicy {
        match &self.work {
            Work::Daemon(daemon) => daemon.stopping,
            Work::Timer(_) => StopPolicy::default(),
        }
    }

    /// Whether it matters when the object changed last.
    pub(crate) fn idles(&self) -> bool {
        match &self.work {
            Work::Daemon(_) => false,
            Work::Timer(timer) => timer.timing.idle().is_some(),
        }
    }
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}'", report::noun(self.spec.trigger), self.spec.id)
    }
}
