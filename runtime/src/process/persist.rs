//! Writes to handled objects: nothing else in the runtime patches them.

pub(crate) mod apply;
pub(crate) mod background_write;
pub(crate) mod finalizer_sweep;
pub(crate) mod pruned_fields;
