//! The model of an operator: its resources, the Rust types of their fields, and its handlers.

mod alternatives;
pub mod builtin_kinds;
pub mod coordination;
pub(crate) mod default_rules;
pub mod default_values;
pub mod field_lookup;
pub mod generated_types;
pub mod handler;
pub mod hook;
pub mod identifier;
pub mod index;
mod k8s_types;
pub mod lower;
pub mod member_names;
pub mod object_parts;
pub mod operator;
pub mod param;
pub mod rbac;
pub mod resource;
pub mod sample_object;
mod scalar;
mod schema_check;
mod schema_to_type;
mod serde_rename;
pub mod shared_types;
pub mod status_subresource;
mod type_complexity;
mod type_names;
pub mod type_options;
mod validation_docs;
pub mod webhook;

pub use schema_to_type::RootObject;
pub use serde_rename::RenameRule;
pub use type_names::{DefiningModule, TypeNames};
