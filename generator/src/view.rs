//! The values that the templates print; only layout is decided here.

pub mod child;
pub mod cluster_test;
mod default_value;
pub mod deploy;
mod doc_comments;
mod enumeration;
pub mod hooks;
mod imports;
pub mod indices;
pub mod kind;
pub mod layout;
mod member_names;
pub mod memo;
pub mod method;
pub(crate) mod module;
pub mod operator;
pub mod phrases;
mod registration;
mod root;
pub mod scaffold;
mod serde_attributes;
mod serde_rename;
mod structure;
pub mod stub;
mod version;
mod version_writer;
pub mod webhooks;
