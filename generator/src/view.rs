//! Templates and the values that they print; nothing is decided here but layout.

pub mod child;
pub mod cluster_test;
pub mod deploy;
mod docs;
mod enumeration;
pub mod hook;
mod imports;
pub mod indices;
pub mod kind;
pub mod layout;
pub mod memo;
pub mod method;
pub(crate) mod module;
pub mod operator;
mod rename;
mod root;
pub mod scaffold;
mod structure;
pub mod stub;
mod value;
mod version;
pub mod webhooks;
mod wire;
