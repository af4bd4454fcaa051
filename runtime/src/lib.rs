//! What every operator made by kopf-gen runs on: it watches objects, finds out what happened to
//! them, calls their handlers, and keeps all progress on the objects themselves.
//!
//! Generated code declares an [`Operator`] with its [`Resource`]s; people write handlers, which
//! take a [`ChangeContext`], a [`FieldContext`], a [`EventContext`], a [`DaemonContext`] or a [`TimerContext`] and return a
//! [`HandlerResult`]:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use kopf_runtime::prelude::*;
//! use kopf_runtime::{
//!     ChangeHandler, On, Operator, Resource, ResourceSpec, Scope, StatusSubresource,
//! };
//!
//! struct Greeter;
//!
//! impl Greeter {
//!     async fn create_fn(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
//!         info!("{} is there", cx.name());
//!         cx.set_result(&json!({"greeted": cx.name()}))?;
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let spec = ResourceSpec {
//!         group: "kopf.dev",
//!         version: "v1",
//!         kind: "KopfExample",
//!         plural: "kopfexamples",
//!         scope: Scope::Namespaced,
//!         status: StatusSubresource::Present,
//!     };
//!     let examples = Resource::<Value, Greeter>::new(spec, &Arc::new(Greeter))
//!         .change(ChangeHandler::new("create_fn", On::create()), |greeter, cx| {
//!             Box::pin(greeter.create_fn(cx))
//!         })
//!         .build();
//!     Operator::new("greeter").resource(examples).main()
//! }
//! ```
//!
//! # What can be relied on
//!
//! - Handlers of one object never run at the same time, and those of many objects do.
//! - What succeeded and was recorded is not run again, also after the operator was killed.
//! - A success counts for the state that the handler saw: after an edit in the middle of the
//!   handling, an update follows for every handler that has not seen it.
//! - An event that is older than the runtime's own last write to the object is not news.
//! - A write is repeated until it lands. If the server does not accept what a handler wants
//!   written, that attempt has failed, and the handler is called again.
//! - A daemon or timer runs beside its object only while a finalizer holds the object, and the
//!   finalizer goes when all of them are gone. A timer never overlaps with itself.
//! - Lists and watches that break are begun anew, and what was deleted meanwhile is noticed.

pub mod admission;
mod background;
mod client;
mod context;
mod coordination;
mod events;
mod handler;
mod health;
mod index;
mod operator;
pub mod prelude;
mod process;
mod queue;
mod registration;
mod settings;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use context::hierarchy;
pub use handler::predicate;
pub use settings::storage;

pub use client::authentication::CredentialsExhausted;
pub use client::resource::{ResourceSpec, Scope, StatusSubresource};
pub use context::Old;
pub use context::change::ChangeContext;
pub use context::daemon::DaemonContext;
pub use context::event::EventContext;
pub use context::field::FieldContext;
pub use context::index::IndexContext;
pub use context::mutation::MutationContext;
pub use context::stop::StopSignal;
pub use context::timer::TimerContext;
pub use context::validation::{Caller, ValidationContext};
pub use events::log_layer::EventLayer;
pub use events::posting::EventSeverity;
pub use events::recorder::EventRecorder;
pub use handler::error::{AdmissionError, AdmissionResult, HandlerError, HandlerResult};
pub use handler::memo::Memo;
pub use handler::patch::Patch;
pub use handler::webhook::WebhookHandler;
pub use handler::{
    ChangeHandler, DaemonHandler, EventHandler, FieldHandler, IndexHandler, On, SubHandler,
    TimerHandler,
};
pub use health::endpoint::{HealthEndpoint, InvalidHealthEndpoint};
pub use index::{Index, IndexResult, IndexSnapshot, IndexView, Indices};
pub use kopf_core::admission::Operation;
pub use kopf_core::admission::certificate::Certificate;
pub use kopf_core::admission::review::UserInfo;
pub use kopf_core::background::stopping::{StopReason, StopReasons};
pub use kopf_core::cause::{Reason, Subject};
pub use kopf_core::handler::filter::{Combined, TextTest, ValueTest};
pub use kopf_core::handler::retry::ErrorMode;
pub use kopf_core::lifecycle::Lifecycle;
pub use kopf_core::object::diff::{Diff, DiffItem, DiffOp, OldValue};
pub use kopf_core::peering::Ties;
pub use kopf_core::persistence::Persistence;
pub use kopf_core::scope::NamespacePattern;
pub use kopf_core::selection::{DiscoveredResource, Selector};
pub use kube::core::DynamicObject;
pub use operator::hook::{
    CleanupContext, Credentials, HookFailure, HookHandler, Hooks, LoginContext, LoginResult,
    OperatorHandlers, ProbeContext, StartupContext,
};
pub use operator::{EndedBeforeReady, Error, Namespaces, Operator, RunningOperator};
pub use registration::{Resource, ResourceHandlers};
pub use settings::{
    BackgroundSettings, DiffBaseStore, ExecutionSettings, HealthSettings, LeaderElectionSettings,
    NetworkingSettings, PeeringMode, PeeringSettings, PersistenceSettings, PostingLevel,
    PostingSettings, ProgressPosting, ProgressStore, QueueingSettings, ScanningSettings, Settings,
    ShutdownSettings, WatchingSettings,
};
pub use watch::WatchEventType;

/// The contract between generated code and this crate; it changes when they no longer fit.
const CODEGEN_ABI: u32 = 1;

/// Stops the build of generated code that was made for another version of this crate.
///
/// # Panics
/// At compile time, if the versions differ.
pub const fn assert_codegen_abi(generated: u32) {
    assert!(
        generated == CODEGEN_ABI,
        "the generated code does not fit this kopf-runtime: run `kopf-gen generate`"
    );
}
