//! Rust as a tree: the paths and types that the model decides on, the items that the views build
//! from them, and the choice of the names under which a module refers to other ones.

mod import;
mod item;
mod lower;
mod path;
mod prelude;
mod rust_type;
mod scope;
mod syntax;
mod written_attributes;

pub use item::{
    Lint, RustEnum, RustField, RustItem, RustModule, RustNewtype, RustStruct, RustVariant,
    SerdeArgument,
};
pub use path::{NotARustPath, PathRoot, RustPath};
pub use prelude::is_in_prelude;
pub use rust_type::{NotARustType, RustType, TypeArgument};
pub use syntax::{documented, ident};
pub use written_attributes::WrittenAttributes;
