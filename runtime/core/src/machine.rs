//! The life of one object as a state machine: inputs in, effects out, no clock and no I/O.
//!
//! Each machine has a method `step(input, now)` that returns one effect. The caller performs the
//! effect, and gives its result to the next step. [`now::Now`] brings along what a step cannot know by
//! itself: the time, a random number, and whether the operator may act.
//!
//! # The machines
//!
//! - [`write::ObjectWrite`]: one patch on its way to an object, from its first request to its
//!   result. It chooses the endpoint and the precondition of each request, and decides what every
//!   [`answer::Answer`] means: whether to send the request again and when, to read the object
//!   first, to give up, or to find out whether an edit was made although its answer was lost.
//! - [`read::ObjectRead`]: the newest state of an object.
//! - [`release::ObjectRelease`]: the removal of our finalizer from an object that is nested too
//!   deep to be read.
//!
//! # Who owns what
//!
//! A machine owns all decisions and the state between its steps. The caller owns the clock, the
//! connection, and the text of answers, which it parses by [`answer::Answer::read`]. One effect is
//! under way at a time. A caller may drop a machine between any two steps, as a killed process
//! does.

pub mod answer;
pub mod effect;
mod exchange;
pub mod growing_pause;
pub mod now;
mod pruned_fields;
pub mod read;
pub mod release;
pub mod request;
pub mod write;
