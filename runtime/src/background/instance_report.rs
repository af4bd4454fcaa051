//! The daemons and timers of one object, as the page of the operator shows them.

use std::time::Duration;

use kopf_core::background::desired::InstanceState;
use serde::Serialize;

use super::{Background, InstanceHandle};

/// A daemon or timer of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InstanceReport {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) instance_type: &'static str,
    pub(crate) state: &'static str,
    /// The time until the next tick of a timer.
    #[serde(skip)]
    pub(crate) next_tick: Option<Duration>,
}

impl Background {
    /// The daemons and timers of an object, in their declared order.
    pub(crate) fn report(&self, uid: &str) -> Vec<InstanceReport> {
        let of_object = {
            let objects = self.objects();
            let mut objects = objects.iter();
            let found = objects.find(|(key, _)| &*key.uid == uid);
            found.map(|(_, instances)| instances.handles())
        };
        let handles = of_object.unwrap_or_default();
        handles.iter().map(|handle| self.describe(handle)).collect()
    }

    fn describe(&self, handle: &InstanceHandle) -> InstanceReport {
        let instance = handle.instance();
        let (instance_type, next_tick) = match handle {
            InstanceHandle::Daemon(_) => ("daemon", None),
            InstanceHandle::Timer(timer) => ("timer", timer.next_tick()),
        };
        let now = self.services.now();
        InstanceReport {
            id: instance.handler.spec.id.as_str().to_owned(),
            instance_type,
            state: match instance.state() {
                InstanceState::Absent => "absent",
                InstanceState::Running => "running",
                InstanceState::Stopping => "stopping",
                InstanceState::Abandoned => "abandoned",
                InstanceState::Finished => "finished",
            },
            next_tick: next_tick.map(|tick| tick.saturating_sub(now)),
        }
    }
}
