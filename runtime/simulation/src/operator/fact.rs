//! What an operator does besides requests, as claims need it.

use std::fmt;
use std::sync::Arc;

use kopf_core::cause::Reason;
use kopf_core::handler::HandlerId;
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::watch::WatchEventType;
use serde_json::Value;

/// Something that an operator has done.
#[derive(Debug, Clone)]
pub enum OperatorFact {
    /// An attempt of a handler has begun.
    CallBegun(BegunCall),
    /// An attempt has ended, or has failed because its patch was rejected.
    CallEnded {
        /// The object.
        uid: &'static str,
        /// The handler.
        handler: HandlerId,
        /// Whether no other attempt follows.
        finished: bool,
    },
    /// An attempt was cut off by the end of the lease.
    CallCut {
        /// The object.
        uid: &'static str,
    },
    /// A request to change an object is sent.
    Sent {
        /// The object.
        uid: &'static str,
        /// The number of the request.
        call: u64,
        /// Whether it may carry records of handlers.
        has_records: bool,
    },
    /// A call of `reconcile` has begun.
    ReconcileBegun {
        /// The object.
        uid: &'static str,
        /// The state of the object.
        state: Arc<Value>,
        /// The names of the children that it wants.
        wanted: Vec<String>,
    },
    /// A call of `reconcile` has applied its children, or has failed.
    ReconcileEnded {
        /// The object.
        uid: &'static str,
        /// Whether all children are applied.
        succeeded: bool,
    },
    /// A request to change or to delete a child is sent.
    ChildSent {
        /// The owner.
        uid: &'static str,
        /// The child.
        name: Arc<str>,
        /// Whether it is deleted.
        deletes: bool,
    },
    /// A state of an object has come from a list.
    Listed {
        /// The object.
        uid: &'static str,
        /// Its version.
        version: ResourceVersion,
    },
    /// The list of all objects is complete.
    ListEnded,
    /// Event handlers were called.
    EventCalled {
        /// The object.
        uid: &'static str,
        /// The type of the event.
        event_type: WatchEventType,
    },
    /// A daemon or timer has started.
    BackgroundStarted {
        /// The object.
        uid: &'static str,
        /// Its position among the daemons and timers of the kind.
        at: usize,
    },
    /// Nothing of a daemon or timer runs any more, or the operator does not wait for it.
    BackgroundEnded {
        /// The object.
        uid: &'static str,
        /// Its position among the daemons and timers of the kind.
        at: usize,
    },
    /// The operator cannot handle an object for now.
    Trouble {
        /// The object.
        uid: &'static str,
        /// The problem.
        problem: String,
    },
    /// The operator waits before it writes to an object, as a former state of it has returned.
    ReturnFound {
        /// The object.
        uid: &'static str,
    },
    /// An object waits for a retry, and may keep its state meanwhile.
    StateKept {
        /// The object.
        uid: &'static str,
        /// The number of states that all waiting objects keep.
        kept: usize,
    },
    /// The operator was asked to stop.
    Stopping,
    /// The operator runs or pauses.
    Gate {
        /// Whether attempts may begin.
        running: bool,
    },
}

/// An attempt that has begun.
#[derive(Debug, Clone)]
pub struct BegunCall {
    /// The object.
    pub uid: &'static str,
    /// The handler.
    pub handler: HandlerId,
    /// The reason.
    pub reason: Reason,
    /// Whether resume handlers are due.
    pub initial: bool,
    /// The state of the object.
    pub state: Arc<Value>,
    /// The sub-handlers that it registers.
    pub registered: Vec<HandlerId>,
    /// Those of them that match the object and its change.
    pub subs: Vec<HandlerId>,
    /// The version of the object that the operator knows.
    pub version: u64,
    /// The token of the attempt, which its patch may add to the object.
    pub token: String,
}

impl fmt::Display for OperatorFact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallBegun(call) => {
                let (id, reason, state) = (&call.handler, call.reason, &call.state["spec"]);
                write!(
                    formatter,
                    "{id} is called for {reason} of {}: {state}",
                    call.uid
                )
            }
            Self::CallEnded {
                uid,
                handler,
                finished,
            } => {
                let end = if *finished {
                    "is done"
                } else {
                    "is to be called again"
                };
                write!(formatter, "{handler} {end} for {uid}")
            }
            Self::CallCut { uid } => write!(formatter, "a call for {uid} is cut off"),
            Self::Sent { uid, call, .. } => write!(formatter, "request {call} is for {uid}"),
            Self::ReconcileBegun { uid, state, wanted } => {
                let state = &state["spec"];
                write!(
                    formatter,
                    "reconcile is called for {uid}: {state}, wants {wanted:?}"
                )
            }
            Self::ReconcileEnded { uid, succeeded } => {
                let end = if *succeeded {
                    "has applied all"
                } else {
                    "has failed"
                };
                write!(formatter, "reconcile {end} for {uid}")
            }
            Self::ChildSent { uid, name, deletes } => {
                let verb = if *deletes { "deletes" } else { "applies" };
                write!(formatter, "{verb} the child {name} of {uid}")
            }
            Self::Listed { uid, version } => write!(formatter, "a list has {uid} at {version}"),
            Self::ListEnded => write!(formatter, "the list is complete"),
            Self::EventCalled { uid, event_type } => {
                write!(
                    formatter,
                    "event handlers are called for {event_type} of {uid}"
                )
            }
            Self::BackgroundStarted { uid, at } => {
                write!(formatter, "daemon or timer {at} of {uid} starts")
            }
            Self::BackgroundEnded { uid, at } => {
                write!(formatter, "daemon or timer {at} of {uid} has ended")
            }
            Self::Trouble { uid, problem } => write!(formatter, "trouble with {uid}: {problem}"),
            Self::ReturnFound { uid } => {
                write!(formatter, "waits, as a former state of {uid} has returned")
            }
            Self::StateKept { uid, kept } => {
                write!(formatter, "{uid} waits; {kept} states are kept")
            }
            Self::Stopping => write!(formatter, "the operator stops"),
            Self::Gate { running: true } => write!(formatter, "the operator runs"),
            Self::Gate { running: false } => write!(formatter, "the operator pauses"),
        }
    }
}
