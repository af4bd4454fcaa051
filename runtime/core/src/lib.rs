//! The pure decisions of the runtime: no I/O, no clock, no logging, no chance.
//!
//! Everything is a function from values to values; `now` and seeds are arguments. The way of
//! one event through the crate:
//!
//! 1. [`consistency::Expectation::freshness`] tells whether the event is older than our last
//!    write to the object; a stale one is not news.
//! 2. [`persistence::Persistence::sight`] looks at the body: last handled state, present
//!    state, their [`object::diff::Diff`], and the [`cause::Reason`].
//! 3. [`handler::registry::Registry::event_handlers`] and
//!    [`handler::registry::Registry::background_handlers`] select what needs no cycle.
//! 4. [`cycle::decide`] tells what the change handlers' side demands: nothing, the
//!    finalizer, a tidying write, or a [`cycle::Cycle`].
//! 5. The cycle: [`cycle::Cycle::due`] → for each [`cycle::Cycle::begin`], the call,
//!    [`cycle::Cycle::finish`], [`object::patch::ObjectPatch::deliver`] of the result →
//!    [`cycle::Cycle::conclude`]. Sub-handlers: [`cycle::Cycle::sub`], the same steps on the
//!    [`cycle::sub::SubCycle`], its `outcome` for the parent, [`cycle::Cycle::absorb`].
//! 6. [`cycle::CycleOutcome::ahead`] tells what is left to be done when all that is written.
//! 7. [`persistence::Persistence::seal`], then [`object::patch::ObjectPatch::into_requests`] and
//!    [`object::patch::edit_requests`] give the requests in their order.
//! 8. [`schedule::next`] tells when to look again; [`persistence::Persistence::wake_up`] is
//!    the write that makes the API server send an event.
//!
//! The guarantee behind [`seen`] and the end of a cycle is in `docs/guarantees.md`.

#![warn(clippy::disallowed_methods)]

pub mod admission;
pub mod background;
pub mod cause;
pub mod cycle;
pub mod diffbase;
pub mod election;
pub mod handled_states;
pub mod handler;
pub mod index;
pub mod json;
pub mod lifecycle;
pub mod object;
pub mod outcome;
pub mod peering;
pub mod persistence;
pub mod posting;
pub mod progress;
pub mod reverts;
pub mod scope;
pub mod selection;
pub mod time;
