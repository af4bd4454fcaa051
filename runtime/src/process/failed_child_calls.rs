//! Handlers of children that failed and are called again: in memory only, as they keep no progress.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::HandlerSpec;
use kopf_core::machine::object::NextCall;
use kopf_core::progress::record::Record;
use tokio::time::Instant;

use super::batch::ReservedBytes;
use crate::children::store::ChildEvent;

/// The failed calls that are kept for one owner.
const MAX_CALLS: usize = 256;

/// The failed calls for the children of one owner; at most one for each handler and child.
#[derive(Debug, Default)]
pub(super) struct FailedChildCalls {
    /// Few owners have any.
    #[expect(clippy::box_collection, reason = "small while there is none")]
    calls: Option<Box<Vec<FailedChildCall>>>,
}

/// A call that is repeated, with what happened to the child.
#[derive(Debug)]
pub(super) struct FailedChildCall {
    pub(super) spec: Arc<HandlerSpec>,
    pub(super) happened: ChildEvent,
    pub(super) record: Record,
    pub(super) due: Instant,
    pub(super) _reserved: ReservedBytes,
}

// === impl FailedChildCalls ===

impl FailedChildCalls {
    /// Keeps a call; returns whether there was room for it.
    #[must_use]
    pub(super) fn push(&mut self, call: FailedChildCall) -> bool {
        let calls = self.calls.get_or_insert_default();
        let has_room = calls.len() < MAX_CALLS;
        if has_room {
            calls.push(call);
        }
        has_room
    }

    /// Whether no call waits.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.is_empty())
    }

    /// Forgets the call of a handler that is called for something newer of the same child.
    pub(super) fn forget(&mut self, spec: &HandlerSpec, uid: &str) {
        if let Some(calls) = &mut self.calls {
            calls.retain(|call| call.spec.id != spec.id || *call.happened.uid != *uid);
        }
    }

    /// Takes a call that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<FailedChildCall> {
        let calls = self.calls.as_mut()?;
        let at = calls.iter().position(|call| call.due <= now)?;
        Some(calls.remove(at))
    }

    /// Drops all calls: the owner is gone.
    pub(super) fn clear(&mut self) {
        self.calls = None;
    }

    /// The next call of the owner, which is not later than that of a failed call.
    pub(super) fn next_call(&mut self, next: NextCall) -> NextCall {
        self.calls.take_if(|calls| calls.is_empty());
        if next == NextCall::Forget {
            self.clear();
        }
        let calls = self.calls.iter().flat_map(|calls| calls.iter());
        let Some(due) = calls.map(|call| call.due).min() else {
            return next;
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
