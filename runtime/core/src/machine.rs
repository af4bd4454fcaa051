//! The life of one object as a state machine: inputs in, effects out, no clock and no I/O.
//!
//! Each machine has a method `step` that takes an input and leads to one effect. The caller
//! performs the effect, and gives its result to the next step. [`now::Now`] brings along what a
//! step cannot know by itself: the time, a random number, and whether the operator may act.
//!
//! # The machines
//!
//! - [`object::ObjectMachine`]: one call for an object, from its events to the time of the next
//!   call. Its state between calls is [`memory::ObjectMemory`].
//! - [`write::ObjectWrite`]: one patch on its way to an object, from its first request to its
//!   result. It chooses the endpoint and the precondition of each request, and decides what every
//!   [`answer::Answer`] means: whether to send the request again and when, to read the object
//!   first, to give up, or to find out whether an edit was made although its answer was lost.
//! - [`read::ObjectRead`]: the newest state of an object.
//! - [`release::ObjectRelease`]: the removal of our finalizer from an object that is nested too
//!   deep to be read.
//!
//! # Inputs
//!
//! - [`memory::BatchSummary`]: events of a watch, an item of a list, a requeue; none of them if a
//!   planned time has come.
//! - [`answer::Answer`]: an accepted request with the object, every HTTP status, a time-out, a lost
//!   connection, an answer that cannot be read, the end of the lease.
//! - [`object::HandlerCall`]: the outcome of a handler, its patch, and its sub-handlers.
//! - [`now::Now`]: the time, and whether the operator pauses or stops, with each step.
//!
//! # Effects
//!
//! [`object::ObjectEffect`]: parse a state, send a request, wait, call a handler, start and stop
//! daemons and timers, show them a state, report, and at last rest until a change or a time, or
//! forget the object. Exactly one effect is under way at a time.
//!
//! # Who owns what
//!
//! A machine owns all decisions and the state between its steps. The caller owns the clock, the
//! connection, the functions of handlers, and the texts of states and answers, which it parses by
//! [`answer::Answer::read`]. The caller keeps [`memory::ObjectMemory`] for each object, gives it
//! to at most one machine at a time, and drops it after [`object::NextCall::Forget`]. It may drop
//! a machine and its memory between any two steps, as a killed process does. Daemons and timers
//! have states of their own, which [`crate::background`] decides about.

pub mod answer;
pub mod effect;
mod exchange;
pub mod growing_pause;
pub mod memory;
pub mod now;
pub mod object;
mod pruned_fields;
pub mod read;
pub mod reconcile;
pub mod release;
pub mod request;
pub mod write;
