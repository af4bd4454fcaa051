//! Tests that the examples are up to date, and work on a real control plane.

#[path = "examples/admission.rs"]
mod admission;
#[path = "examples/all_at_once.rs"]
mod all_at_once;
#[path = "examples/builtins.rs"]
mod builtins;
#[path = "examples/children.rs"]
mod children;
#[path = "examples/children_reconcile.rs"]
mod children_reconcile;
#[path = "examples/children_storm.rs"]
mod children_storm;
#[path = "examples/daemons.rs"]
mod daemons;
#[path = "examples/deployment.rs"]
mod deployment;
#[path = "examples/embedded.rs"]
mod embedded;
#[path = "examples/ephemeral_volumes.rs"]
mod ephemeral_volumes;
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
#[path = "examples/load_tests.rs"]
mod load_tests;
#[path = "examples/migration.rs"]
mod migration;
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
#[path = "examples/tenants.rs"]
mod tenants;
#[path = "examples/testing.rs"]
mod testing;
#[path = "examples/timers.rs"]
mod timers;
#[path = "examples/up_to_date.rs"]
mod up_to_date;
#[path = "examples/walkthrough.rs"]
mod walkthrough;
