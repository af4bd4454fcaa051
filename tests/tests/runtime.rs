//! The runtime on a real control plane.

#[path = "runtime/admission.rs"]
mod admission;
#[path = "runtime/bench.rs"]
mod bench;
#[path = "runtime/change.rs"]
mod change;
#[path = "runtime/children.rs"]
mod children;
#[path = "runtime/continuity.rs"]
mod continuity;
#[path = "runtime/errors.rs"]
mod errors;
#[path = "runtime/events.rs"]
mod events;
#[path = "runtime/kinds.rs"]
mod kinds;
#[path = "runtime/stopping.rs"]
mod stopping;
#[path = "runtime/streams.rs"]
mod streams;
