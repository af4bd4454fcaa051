//! Writes to handled objects: nothing else in the runtime patches them.

pub(crate) mod apply;
pub(crate) mod consistency;
pub(crate) mod deliver;
pub(crate) mod release;
