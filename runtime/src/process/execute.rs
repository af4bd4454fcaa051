//! Calls of handlers: how they are made, and what is told about them.

pub(crate) mod invoke;
pub(crate) mod report;
pub(crate) mod scope;
