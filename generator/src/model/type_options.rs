//! Options for generated types, most of them per path.

use std::collections::BTreeMap;

use super::generated_types::ExistingType;
use super::identifier::TypeName;
use crate::rust::RustPath;

/// Options for generated types; paths look like `spec.containers[].name`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of types, by path.
    pub names: BTreeMap<String, TypeName>,
    /// Types to use instead of the generated ones, by path.
    pub replacements: BTreeMap<String, ExistingType>,
    /// Further derives, by path.
    pub derives: BTreeMap<String, Vec<RustPath>>,
    /// Further derives for all types.
    pub derives_everywhere: Vec<RustPath>,
    /// The use of types from `k8s-openapi`.
    pub builtins: Builtins,
    /// Whether enums have a variant for values that the schema does not list.
    pub open_enums: bool,
    /// Whether structs have a `with_…` method per field.
    pub builders: bool,
}

/// The condition for using a type of `k8s-openapi` for an object of the same form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Builtins {
    /// If every value that the schema allows is unchanged by a round trip.
    #[default]
    Exact,
    /// Also if a round trip normalises values: `1` to `"1"` in quantities, times to whole seconds.
    Compatible,
    /// Never.
    None,
}

impl Options {
    /// The name for the type at a path.
    #[must_use]
    pub fn name(&self, path: &str) -> Option<&TypeName> {
        self.names.get(path)
    }

    /// The type to use instead at a path.
    #[must_use]
    pub fn replacement(&self, path: &str) -> Option<&ExistingType> {
        self.replacements.get(path)
    }

    /// Further derives at a path.
    #[must_use]
    pub fn derives(&self, path: &str) -> &[RustPath] {
        self.derives.get(path).map_or(&[], Vec::as_slice)
    }

    /// Whether no option has a path.
    #[must_use]
    pub fn has_no_paths(&self) -> bool {
        self.names.is_empty() && self.replacements.is_empty() && self.derives.is_empty()
    }

    /// The paths of all options.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let names = self.names.keys();
        let others = self.replacements.keys().chain(self.derives.keys());
        names.chain(others).map(String::as_str)
    }
}
