//! Tests that the examples are up to date, and work on a real control plane.

#[path = "examples/admission.rs"]
mod admission;
#[path = "examples/builtins.rs"]
mod builtins;
#[path = "examples/children.rs"]
mod children;
#[path = "examples/daemons.rs"]
mod daemons;
#[path = "examples/deployment.rs"]
mod deployment;
#[path = "examples/embedded.rs"]
mod embedded;
#[path = "examples/events.rs"]
mod events;
#[path = "examples/exceptions.rs"]
mod exceptions;
#[path = "examples/filtering.rs"]
mod filtering;
#[path = "examples/fixture.rs"]
mod fixture;
#[path = "examples/handlers.rs"]
mod handlers;
#[path = "examples/hooks.rs"]
mod hooks;
#[path = "examples/indexing.rs"]
mod indexing;
#[path = "examples/kubectl.rs"]
mod kubectl;
#[path = "examples/minimal.rs"]
mod minimal;
#[path = "examples/peering.rs"]
mod peering;
#[path = "examples/presets.rs"]
mod presets;
#[path = "examples/reporting.rs"]
mod reporting;
#[path = "examples/selection.rs"]
mod selection;
#[path = "examples/subhandlers.rs"]
mod subhandlers;
#[path = "examples/testing.rs"]
mod testing;
#[path = "examples/timers.rs"]
mod timers;
#[path = "examples/up_to_date.rs"]
mod up_to_date;
#[path = "examples/walkthrough.rs"]
mod walkthrough;
