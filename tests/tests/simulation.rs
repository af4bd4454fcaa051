//! Holds the simulated API server of `kopf-simulation` against the real one: both get the same
//! requests, and each difference between their answers is a bug of the simulated one.
//!
//! `KOPF_SIMULATION_CASES` sets the number of random sequences, `KOPF_SIMULATION_SEED` the first.

#[path = "simulation/answers.rs"]
mod answers;
#[path = "simulation/denials.rs"]
mod denials;
#[path = "simulation/fixed.rs"]
mod fixed;
#[path = "simulation/histories.rs"]
mod histories;
#[path = "simulation/http.rs"]
mod http;
#[path = "simulation/pair.rs"]
mod pair;
#[path = "simulation/random.rs"]
mod random;
#[path = "simulation/requests.rs"]
mod requests;
