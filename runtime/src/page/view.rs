//! The views of the page, in JSON.

use jiff::Timestamp;
use kopf_core::time;
use serde::Serialize;

use super::Page;
use super::journal::ObjectHistoryView;
use super::journal::entry::Millis;
use super::journal::objects::StateCounts;
use crate::background::instance_report::InstanceReport;
use crate::health;
use crate::health::metrics::MetricsSummary;
use crate::task::heartbeat::{ConditionState, OperatorPhase};

/// The operator as a whole.
#[derive(Debug, Serialize)]
pub(super) struct OverviewView {
    operator: &'static str,
    version: Option<&'static str>,
    runtime: &'static str,
    now: Millis,
    revision: u64,
    phase: &'static str,
    ready: bool,
    problems: Vec<String>,
    paused: Option<PauseView>,
    leads: bool,
    /// How many objects of each kind are in which state.
    states: StateCounts,
    /// How often an object was left out, as there are too many.
    left_out: u64,
    watches: Vec<WatchView>,
    /// Whether the page can edit objects.
    edits: bool,
    #[serde(flatten)]
    metrics: MetricsSummary,
}

/// The pause of the operator.
#[derive(Debug, Serialize)]
struct PauseView {
    reason: &'static str,
    message: String,
}

/// A watch, or another part with a readiness of its own.
#[derive(Debug, Serialize)]
struct WatchView {
    name: String,
    state: &'static str,
    message: Option<String>,
}

/// One object.
#[derive(Debug, Serialize)]
pub(super) struct PageObjectView {
    now: Millis,
    revision: u64,
    #[serde(flatten)]
    history: ObjectHistoryView,
    background: Vec<PageInstanceView>,
}

/// A daemon or timer of an object.
#[derive(Debug, Serialize)]
struct PageInstanceView {
    #[serde(flatten)]
    instance: InstanceReport,
    next_tick: Option<Millis>,
}

// === impl Page ===

impl Page {
    pub(super) fn overview(&self, edits: bool) -> OverviewView {
        let problems =
            health::unreadiness(&self.heartbeats, &self.pause_gate, self.serves_webhooks);
        let pause = self.pause_gate.pause();
        let conditions = self.heartbeats.conditions().into_iter();
        OverviewView {
            operator: self.operator,
            version: self.version,
            runtime: env!("CARGO_PKG_VERSION"),
            now: Timestamp::now().into(),
            revision: self.journal.revision(),
            phase: match self.heartbeats.phase() {
                OperatorPhase::Starting => "starting",
                OperatorPhase::Running => "running",
                OperatorPhase::Stopping => "stopping",
                OperatorPhase::Broken(_) => "broken",
            },
            ready: problems.is_empty(),
            problems,
            paused: pause.map(|pause| PauseView {
                reason: pause.reason(),
                message: pause.to_string(),
            }),
            leads: self.pause_gate.may_write(),
            states: self.journal.counts(),
            left_out: self.journal.left_out(),
            edits,
            watches: conditions.map(WatchView::from).collect(),
            metrics: self.metrics.summary(),
        }
    }

    pub(super) fn object(&self, uid: &str) -> Option<PageObjectView> {
        let history = self.journal.history(uid)?;
        let background = self.parts.background();
        let instances = background.map(|background| background.report(uid));
        let now = Timestamp::now();
        let instances = instances.unwrap_or_default().into_iter();
        let background = instances.map(|instance| PageInstanceView {
            next_tick: instance.next_tick.map(|tick| time::after(now, tick).into()),
            instance,
        });
        Some(PageObjectView {
            now: now.into(),
            revision: self.journal.revision(),
            history,
            background: background.collect(),
        })
    }
}

// === impl WatchView ===

impl From<(String, ConditionState)> for WatchView {
    fn from((name, state): (String, ConditionState)) -> Self {
        let (state, message) = match state {
            ConditionState::Idle => ("idle", None),
            ConditionState::Pending(message) => ("pending", Some(message)),
            ConditionState::Fine => ("fine", None),
            ConditionState::Absent(message) => ("absent", Some(message)),
            ConditionState::Failing(message) => ("failing", Some(message)),
        };
        Self {
            name,
            state,
            message,
        }
    }
}
