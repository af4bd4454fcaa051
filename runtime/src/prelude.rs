//! What a file of handlers uses: `use kopf_runtime::prelude::*;`.

pub use std::time::Duration;

pub use kube::{Api, Client, ResourceExt as _};
pub use serde_json::{Value, json};
pub use tracing::{debug, error, info, warn};

pub use crate::context::hierarchy::{Adoption, Existing, Naming, OwnerFlags};
pub use crate::{
    AdmissionError, AdmissionResult, Change, Cleanup, Credentials, Daemon, EventSeverity,
    EventType, FieldChange, HandlerError, HandlerResult, IndexResult, IndexView, Indexing, Login,
    LoginResult, Memo, Mutation, Old, Operation, Probe, Reason, Seen, Startup, StopReason,
    StopSignal, SubHandler, Tick, Validation,
};
