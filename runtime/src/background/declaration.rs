//! A declared daemon or timer of a kind, with everything that its runs share.

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
pub(crate) struct BackgroundHandler {
    pub(crate) spec: Arc<HandlerSpec>,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: Arc<HandlerMetrics>,
    pub(crate) registered: RegisteredBackground,
    pub(crate) resource: KindSpec,
    pub(crate) api: Arc<KindApi>,
    pub(crate) memos: Option<Arc<Memos>>,
}

/// The function of a daemon or timer, with its schedule.
pub(crate) enum RegisteredBackground {
    Daemon(RegisteredDaemon),
    Timer(Arc<RegisteredTimer>),
}

impl BackgroundHandler {
    pub(super) fn initial_delay(&self, object: &Value) -> Duration {
        match &self.registered {
            RegisteredBackground::Daemon(daemon) => daemon.initial_delay.of(object),
            RegisteredBackground::Timer(timer) => timer.initial_delay.of(object),
        }
    }

    /// A running tick is never interrupted, only waited for.
    pub(super) fn stopping(&self) -> StopPolicy {
        match &self.registered {
            RegisteredBackground::Daemon(daemon) => daemon.stopping,
            RegisteredBackground::Timer(_) => StopPolicy::default(),
        }
    }

    /// True if the time since the last change of the object matters.
    pub(crate) fn idles(&self) -> bool {
        match &self.registered {
            RegisteredBackground::Daemon(_) => false,
            RegisteredBackground::Timer(timer) => timer.timing.idle().is_some(),
        }
    }
}

impl fmt::Display for BackgroundHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}'", report::noun(self.spec.trigger), self.spec.id)
    }
}
