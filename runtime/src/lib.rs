//! The runtime of operators that kopf-gen generates. It watches objects, detects what changed, calls
//! your handlers, and stores their progress on the objects themselves.
//!
//! Generated code declares an [`Operator`] with its [`Resource`]s. You write the handlers: functions
//! that take a context, such as a [`ChangeContext`], a [`FieldContext`], an [`EventContext`], a
//! [`DaemonContext`] or a [`TimerContext`], and return a [`HandlerResult`]:
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
//! # Guarantees
//!
//! - Change handlers of one object never run at the same time; handlers of different objects do.
//! - The runtime does not run a handler again whose success was recorded, even after the process was
//!   killed.
//! - A success counts for the state that the handler was called with: after an edit during the
//!   handling, every handler that was called with the older state gets an update.
//! - The runtime ignores watch events that are older than its own last write to the object.
//! - The runtime repeats a write until the API server accepts it. If the API server rejects what a
//!   handler wants to write, that attempt has failed, and the runtime calls the handler again.
//! - A daemon or timer runs only while a finalizer holds its object, and the runtime removes the
//!   finalizer when all of them have ended. Calls of one timer never overlap.
//! - The runtime restarts lists and watches that break, and notices objects that were deleted
//!   meanwhile.

pub mod admission;
mod background;
mod children;
mod client;
mod context;
mod coordination;
mod events;
mod handler;
mod health;
mod index;
pub mod inspect;
mod operator;
mod page;
pub mod prelude;
mod process;
mod queue;
pub mod readiness;
mod registration;
mod settings;
mod task;
mod test_context;
mod watch;

pub use context::hierarchy;
pub use context::predicate;
pub use settings::storage;

pub use client::authentication::CredentialsExhausted;
pub use client::resource::{ResourceSpec, Scope, StatusSubresource};
pub use context::Old;
pub use context::change::ChangeContext;
pub use context::child::{ChildChange, ChildContext};
pub use context::condition::HasConditions;
pub use context::daemon::DaemonContext;
pub use context::event::EventContext;
pub use context::field::FieldContext;
pub use context::filter::FilterContext;
pub use context::index::IndexContext;
pub use context::memo_context::MemoContext;
pub use context::mutation::MutationContext;
pub use context::object_context::ObjectContext;
pub use context::reconcile::{ChildKind, ChildOf, ChildView, ReconcileCall, ReconcileContext};
pub use context::stop::StopSignal;
pub use context::timer::TimerContext;
pub use context::validation::{Caller, ValidationContext};
pub use events::log_layer::EventLayer;
pub use events::posting::EventSeverity;
pub use events::recorder::EventRecorder;
pub use handler::error::{AdmissionError, AdmissionResult, HandlerError, HandlerResult};
pub use handler::memo::Memo;
pub use handler::patch::Patch;
pub use handler::state::SharedState;
pub use handler::webhook::WebhookHandler;
pub use handler::{
    ChangeHandler, ChildHandler, DaemonHandler, EventHandler, FieldHandler, IndexHandler, On,
    ReconcileHandler, SubHandler, TimerHandler, UsedBy,
};
pub use health::endpoint::{HealthEndpoint, InvalidHealthEndpoint};
pub use index::{Index, IndexResult, IndexSnapshot, IndexView, Indices};
pub use kopf_core::admission::Operation;
pub use kopf_core::admission::certificate::Certificate;
pub use kopf_core::admission::review::UserInfo;
pub use kopf_core::background::stopping::{StopReason, StopReasons};
pub use kopf_core::cause::{Reason, Subject};
pub use kopf_core::children::options::{
    ChildContents, ChildOptions, Pruning, UpdateOrder, UpdateStrategy,
};
pub use kopf_core::children::reasons::{ReconcileReason, ReconcileReasons, RelatedObject};
pub use kopf_core::children::{APPLIED_ANNOTATION, OPERATOR_LABEL, OWNER_LABEL};
pub use kopf_core::handler::filter::{Combined, TextTest, ValueTest, WhenTest};
pub use kopf_core::handler::retry::ErrorMode;
pub use kopf_core::lifecycle::Lifecycle;
pub use kopf_core::object::condition::ConditionStatus;
pub use kopf_core::object::diff::{Diff, DiffItem, DiffOp, OldValue};
pub use kopf_core::peering::Ties;
pub use kopf_core::persistence::Persistence;
pub use kopf_core::scope::{InvalidExpression, NamespacePattern};
pub use kopf_core::selection::{DiscoveredResource, Selector};
pub use kube::core::DynamicObject;
pub use kube::core::object::{HasSpec, HasStatus};
pub use operator::embedded::{EndedBeforeReady, RunningOperator};
pub use operator::hook::{
    CleanupContext, Credentials, HookFailure, HookHandler, Hooks, LoginContext, LoginResult,
    OperatorHandlers, ProbeContext, StartupContext,
};
pub use operator::logging::{LogAlreadySetUp, LogFormat, LogSetup, LogVerbosity};
pub use operator::{Error, Namespaces, Operator};
pub use page::address::{InvalidPageAddress, PageSetup};
pub use registration::{Resource, ResourceHandlers};
pub use settings::{
    BackgroundSettings, DiffBaseStore, ExecutionSettings, HealthSettings, InvalidSetting,
    LeaderElectionSettings, NetworkingSettings, PeeringMode, PeeringSettings, PersistenceSettings,
    PostingLevel, PostingSettings, ProgressPosting, ProgressStore, QueueingSettings,
    ScanningSettings, Settings, ShutdownSettings, WatchingSettings,
};
pub use test_context::TestContext;
pub use watch::WatchEventType;

/// The version of the contract between generated code and this crate.
const CODEGEN_ABI: u32 = 4;

/// Stops the build of code that was generated for an incompatible version of this crate.
///
/// # Panics
/// At compile time, if the versions differ.
pub const fn assert_codegen_abi(generated: u32) {
    assert!(
        generated == CODEGEN_ABI,
        "the generated code does not fit this kopf-runtime: run `kopf-gen generate`"
    );
}
