//! The items that handler code needs most: `use kopf_runtime::prelude::*;`.

pub use std::time::Duration;

pub use kube::{Api, Client, ResourceExt as _};
pub use serde_json::{Value, json};
pub use tracing::{debug, error, info, warn};

pub use crate::context::hierarchy::{Adoption, Existing, Naming, OwnerFlags};
pub use crate::readiness;
pub use crate::{
    AdmissionError, AdmissionResult, ChangeContext, ChildContext, CleanupContext, ConditionStatus,
    Credentials, DaemonContext, EventContext, EventSeverity, FieldContext, FilterContext,
    HandlerError, HandlerResult, IndexContext, IndexResult, IndexView, LoginContext, LoginResult,
    Memo, MemoContext, MutationContext, ObjectContext, Old, Operation, ProbeContext, Reason,
    ReconcileContext, ReconcileReason, StartupContext, StopReason, StopSignal, SubHandler,
    TimerContext, ValidationContext, WatchEventType,
};
