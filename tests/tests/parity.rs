//! Runs the same scenarios on Python Kopf and on our runtime: objects, events and calls of handlers
//! must be the same.

#[path = "parity/admission.rs"]
mod admission;
#[path = "parity/background.rs"]
mod background;
#[path = "parity/changes.rs"]
mod changes;
#[path = "parity/continuity.rs"]
mod continuity;
#[path = "parity/counterparts.rs"]
mod counterparts;
#[path = "parity/errors.rs"]
mod errors;
#[path = "parity/hierarchy.rs"]
mod hierarchy;
#[path = "parity/improvements.rs"]
mod improvements;
#[path = "parity/inspect.rs"]
mod inspect;
#[path = "parity/inventory.rs"]
mod inventory;
#[path = "parity/logins.rs"]
mod logins;
#[path = "parity/logs.rs"]
mod logs;
#[path = "parity/peering.rs"]
mod peering;
#[path = "parity/resources.rs"]
mod resources;
#[path = "parity/scenario.rs"]
mod scenario;
#[path = "parity/scopes.rs"]
mod scopes;
#[path = "parity/selection.rs"]
mod selection;
#[path = "parity/trace.rs"]
mod trace;
