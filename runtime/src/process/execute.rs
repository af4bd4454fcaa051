//! Calls of handlers: the call, its scope, and its report in the log and in Kubernetes events.

pub(crate) mod applied_uids;
pub(crate) mod handler_scope;
pub(crate) mod invoke;
pub(crate) mod report;
