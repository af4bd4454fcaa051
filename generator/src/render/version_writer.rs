//! The state that all parts of one version module share while its items are built.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::model::default_functions::DefaultFunctions;
use crate::model::default_values::Defaults;
use crate::model::generated_types::{Ty, is_default_trait};
use crate::model::resource::{CustomResource, TypedVersion};
use crate::rust::{RustPath, RustType};

/// Builds the items of one version.
pub(super) struct VersionWriter<'a> {
    pub(super) resource: &'a CustomResource,
    pub(super) version: &'a TypedVersion,
    pub(super) defaults: Defaults<'a>,
    pub(super) functions: DefaultFunctions,
    /// The paths of derives, which almost all types share.
    pub(super) derive_paths: RefCell<BTreeMap<&'static str, RustPath>>,
    pub(super) nullable: bool,
    pub(super) undeclared: bool,
    pub(super) constants: bool,
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
        for derive in more {
            if !list.iter().any(|known| is_same_trait(known, derive)) {
                list.push(derive.clone());
            }
        }
        list
    }

    /// The derives without a trait that is written out, or that the type cannot have.
    pub(super) fn without(
        &self,
        trait_name: &'static str,
        mut derives: Vec<RustPath>,
    ) -> Vec<RustPath> {
        let removed = self.derive(trait_name);
        derives.retain(|derive| !is_same_trait(&removed, derive));
        derives
    }
}

/// Whether an option names a known trait; it may write `Debug` for `std::fmt::Debug`.
fn is_same_trait(known: &RustPath, given: &RustPath) -> bool {
    known == given
        || (given.needs_no_import() && known.name() == given.name())
        || (is_default_trait(known) && is_default_trait(given))
}
