//! What the inputs mean: resources, the Rust types of their fields, and the handlers of an operator.

mod alternatives;
mod brevity;
mod builtin;
pub mod field;
mod fit;
pub mod handler;
pub mod hook;
pub mod index;
pub mod initial;
pub mod kind;
mod limits;
pub mod lower;
mod map;
pub mod name;
mod naming;
pub mod operator;
pub mod options;
pub mod peers;
pub mod rbac;
pub mod resource;
pub mod sample;
pub mod share;
pub mod standard;
pub mod types;
pub mod webhook;

pub use map::Root;
pub use naming::{Home, Names};
