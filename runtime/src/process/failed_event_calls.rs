//! Event handlers that failed and are called again: in memory only, as they keep no progress.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::HandlerSpec;
use kopf_core::machine::object::NextCall;
use kopf_core::progress::record::Record;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::batch::ReservedBytes;
use crate::watch::WatchEventType;

/// The failed calls of one object; at most one for each handler.
#[derive(Debug, Default)]
pub(crate) struct FailedEventCalls {
    /// Few objects have any.
    #[expect(clippy::box_collection, reason = "small while there is none")]
    calls: Option<Box<Vec<FailedEventCall>>>,
    /// The object is gone: only these calls keep its memory.
    gone: bool,
}

/// A call that is repeated, with the event that it was about.
#[derive(Debug)]
pub(crate) struct FailedEventCall {
    pub(crate) spec: Arc<HandlerSpec>,
    pub(crate) event_type: WatchEventType,
    pub(crate) text: Arc<RawValue>,
    pub(crate) record: Record,
    pub(crate) due: Instant,
    pub(crate) _reserved: ReservedBytes,
}

// === impl FailedEventCalls ===

impl FailedEventCalls {
    pub(crate) fn push(&mut self, call: FailedEventCall) {
        self.forget(&call.spec);
        self.calls.get_or_insert_default().push(call);
    }

    /// Forgets the call of a handler that is called for a newer event.
    pub(crate) fn forget(&mut self, spec: &HandlerSpec) {
        if let Some(calls) = &mut self.calls {
            calls.retain(|call| call.spec.id != spec.id);
        }
    }

    /// Takes a call that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<FailedEventCall> {
        let calls = self.calls.as_mut()?;
        let at = calls.iter().position(|call| call.due <= now)?;
        Some(calls.remove(at))
    }

    /// Drops all calls at a pause: another operator gets the events meanwhile.
    pub(crate) fn clear(&mut self) {
        self.calls = None;
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// The next call of the object, which is not later than that of a failed call.
    pub(crate) fn next_call(&mut self, next: NextCall) -> NextCall {
        self.calls.take_if(|calls| calls.is_empty());
        self.gone |= next == NextCall::Forget;
        let due = self
            .calls
            .iter()
            .flat_map(|calls| calls.iter().map(|it| it.due));
        let Some(due) = due.min() else {
            return if self.gone { NextCall::Forget } else { next };
        };
        let delay = due
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        match next {
            NextCall::AwaitChange | NextCall::Forget => NextCall::After(delay),
            NextCall::After(planned) => NextCall::After(planned.min(delay)),
            NextCall::NotBefore(planned) => NextCall::NotBefore(planned),
        }
    }
}
