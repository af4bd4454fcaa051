//! A deterministic world for operators: a simulated API server, virtual time, faults and replay.
//!
//! Everything in a history follows from one seed: no threads, no I/O, no clock.

#[macro_use]
mod planted;

pub mod choices;
pub mod claims;
pub mod explore;
pub mod faults;
pub mod operator;
pub mod server;
pub mod time;
pub mod world;
