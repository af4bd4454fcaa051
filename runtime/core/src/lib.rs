//! The pure decisions of the runtime: no I/O, no clock, no logging, no random numbers.
//!
//! Every decision is a function of values; `now` and seeds are arguments. This is how the runtime
//! uses the crate for one event:
//!
//! 1. [`persistence::Persistence::observe_change`] compares the object with its last handled
//!    state, and gives their [`object::diff::Diff`] and the [`cause::Reason`].
//! 2. [`handler::registry::Registry::event_handlers`] selects the event handlers, and
//!    [`background::desired`] decides which daemons and timers to start and to stop.
//! 3. [`turn::decide`] decides what change handlers require: nothing, a change of the finalizer
//!    ([`handler::finalizer_need`]), a write that ends a reverted cycle, or a [`turn::Turn`].
//! 4. [`turn::run::HandlerRun::due`] lists the handlers to call. The runtime asks
//!    [`turn::run::HandlerRun::begin`] before each call, and reports its outcome to
//!    [`turn::run::HandlerRun::finish`], for which [`handler::retry`] decides about retries.
//! 5. Sub-handlers run in the same way in a [`turn::sub::SubTurn`], which the cycle absorbs.
//! 6. [`turn::Turn`]`::conclude` adds the progress, or the end of the cycle, to a patch, and
//!    says what work is left ([`turn::RemainingWork`]).
//! 7. [`machine::write::ObjectWrite`] writes the patch: it says which request to send, and what
//!    each answer means. [`object::patch_response`] checks whether a response shows just our write.
//!
//! [`handled_states`] and the end of a cycle give the guarantee in `docs/guarantees.md`: every
//! handler handles the newest state. Other modules decide on their own: [`admission`] webhooks,
//! [`election`] and [`peering`] which operator runs, [`posting`] which Kubernetes events are sent,
//! [`reverts`] pauses if another client undoes our writes, [`scope`] which namespaces and
//! [`selection`] which resources an operator serves.

#![warn(clippy::disallowed_methods)]

#[macro_use]
mod planted_macro;

pub mod admission;
pub mod background;
pub mod cause;
pub mod children;
pub mod diffbase;
pub mod election;
pub mod handled_states;
pub mod handler;
pub mod index;
pub mod inspection;
pub mod json;
pub mod lifecycle;
pub mod machine;
pub mod message;
pub mod object;
pub mod outcome;
pub mod pause;
pub mod peering;
pub mod persistence;
#[cfg(kopf_planted_faults)]
pub mod planted;
pub mod posting;
pub mod progress;
pub mod queue;
pub mod readiness;
pub mod reverts;
pub mod scope;
pub mod selection;
pub mod shutdown;
pub mod table;
pub mod time;
pub mod turn;
pub mod watch;
