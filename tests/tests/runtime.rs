//! Tests of the runtime on a real control plane.

#[path = "runtime/admission.rs"]
mod admission;
#[path = "runtime/change.rs"]
mod change;
#[path = "runtime/children.rs"]
mod children;
#[path = "runtime/continuity.rs"]
mod continuity;
#[path = "runtime/daemons.rs"]
mod daemons;
#[path = "runtime/deep_objects.rs"]
mod deep_objects;
#[path = "runtime/default_login.rs"]
mod default_login;
#[path = "runtime/discovery.rs"]
mod discovery;
#[path = "runtime/drafts.rs"]
mod drafts;
#[path = "runtime/election.rs"]
mod election;
#[path = "runtime/embedding.rs"]
mod embedding;
#[path = "runtime/errors.rs"]
mod errors;
#[path = "runtime/events.rs"]
mod events;
#[path = "runtime/fixture.rs"]
mod fixture;
#[path = "runtime/full_disk.rs"]
mod full_disk;
#[path = "runtime/generated_rbac.rs"]
mod generated_rbac;
#[path = "runtime/health.rs"]
mod health;
#[path = "runtime/hooks.rs"]
mod hooks;
#[path = "runtime/indices.rs"]
mod indices;
#[path = "runtime/inspect.rs"]
mod inspect;
#[path = "runtime/kinds.rs"]
mod kinds;
#[path = "runtime/lifecycles.rs"]
mod lifecycles;
#[path = "runtime/logins.rs"]
mod logins;
#[path = "runtime/logs.rs"]
mod logs;
#[path = "runtime/lost_answers.rs"]
mod lost_answers;
#[path = "runtime/memos.rs"]
mod memos;
#[path = "runtime/metrics.rs"]
mod metrics;
#[path = "runtime/page.rs"]
mod page;
#[path = "runtime/page_fixture.rs"]
mod page_fixture;
#[path = "runtime/peering.rs"]
mod peering;
#[path = "runtime/permissions.rs"]
mod permissions;
#[path = "runtime/posting.rs"]
mod posting;
#[path = "runtime/process.rs"]
mod process;
#[path = "runtime/reconcile.rs"]
mod reconcile;
#[path = "runtime/reconcile_permissions.rs"]
mod reconcile_permissions;
#[path = "runtime/rejected_writes.rs"]
mod rejected_writes;
#[path = "runtime/replicas.rs"]
mod replicas;
#[path = "runtime/reverted_writes.rs"]
mod reverted_writes;
#[path = "runtime/scopes.rs"]
mod scopes;
#[path = "runtime/secrets.rs"]
mod secrets;
#[path = "runtime/selection.rs"]
mod selection;
#[path = "runtime/settings.rs"]
mod settings;
#[path = "runtime/stopping.rs"]
mod stopping;
#[path = "runtime/storages.rs"]
mod storages;
#[path = "runtime/streams.rs"]
mod streams;
#[path = "runtime/timers.rs"]
mod timers;
#[path = "runtime/worker_limit.rs"]
mod worker_limit;
