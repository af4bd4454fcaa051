//! A deterministic world for operators: a simulated API server, virtual time, faults and replay.
//!
//! Everything in a history follows from one seed: no threads, no I/O, no clock.

pub mod choices;
pub mod explore;
pub mod faults;
pub mod finalizer_operator;
pub mod server;
pub mod time;
pub mod world;
