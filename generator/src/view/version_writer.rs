//! The state that all parts of one version module share while its items are built.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::default_values::Defaults;
use crate::model::generated_types::Ty;
use crate::model::resource::{CustomResource, TypedVersion};
use crate::model::type_options::Options;
use crate::rust::{RustPath, RustType};

/// Builds the items of one version.
pub(super) struct VersionWriter<'a> {
    pub(super) resource: &'a CustomResource,
    pub(super) version: &'a TypedVersion,
    pub(super) options: &'a Options,
    pub(super) defaults: Defaults<'a>,
    /// The functions that return the default of a field, by their type and the default as JSON.
    pub(super) functions: BTreeMap<(RustType, String), DefaultFunction>,
    pub(super) function_names: BTreeSet<String>,
    /// The paths of derives, which almost all types share.
    pub(super) derive_paths: RefCell<BTreeMap<&'static str, RustPath>>,
    pub(super) nullable: bool,
    pub(super) undeclared: bool,
    pub(super) constants: bool,
}

/// A function that returns the default of a field.
pub(super) struct DefaultFunction {
    pub(super) name: String,
    pub(super) value: syn::Expr,
}

/// The derives of every type.
pub(super) const CLONE: &str = "Clone";
pub(super) const COPY: &str = "Copy";
pub(super) const DEBUG: &str = "std::fmt::Debug";
pub(super) const DEFAULT: &str = "Default";
pub(super) const DESERIALIZE: &str = "serde::Deserialize";
pub(super) const EQ: &str = "Eq";
pub(super) const PARTIAL_EQ: &str = "PartialEq";
pub(super) const SERIALIZE: &str = "serde::Serialize";

// === impl VersionWriter ===

impl VersionWriter<'_> {
    /// A type in this module.
    pub(super) fn ty(&self, ty: &Ty) -> RustType {
        let names = &self.version.type_names;
        ty.rust(&|id| RustPath::local(names.of(id).as_str()))
    }

    fn derive(&self, path: &'static str) -> RustPath {
        let mut known = self.derive_paths.borrow_mut();
        let path = known
            .entry(path)
            .or_insert_with(|| RustPath::external(path));
        path.clone()
    }

    /// The derives of a type, with those that options add.
    pub(super) fn derives(&self, standard: &[&'static str], more: &[RustPath]) -> Vec<RustPath> {
        let mut list: Vec<RustPath> = standard.iter().map(|it| self.derive(it)).collect();
        for derive in self.options.derives_everywhere.iter().chain(more) {
            // The user may write `Debug` for `std::fmt::Debug`.
            let is_same = |known: &RustPath| {
                known == derive || (derive.needs_no_import() && known.name() == derive.name())
            };
            if !list.iter().any(is_same) {
                list.push(derive.clone());
            }
        }
        list
    }
}
