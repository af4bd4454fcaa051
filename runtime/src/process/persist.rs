//! Writes to handled objects: no other code of the runtime patches them.

pub(crate) mod background_write;
pub(crate) mod finalizer_sweep;
pub(crate) mod object_writer;
