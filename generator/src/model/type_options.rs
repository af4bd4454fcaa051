//! Options for generated types, most of them per path.

use std::collections::{BTreeMap, BTreeSet};

use super::generated_types::ExistingType;
use super::identifier::TypeName;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::rust::RustPath;
use crate::suggest::did_you_mean;

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
    /// The places of the paths, if a file has them.
    pub places: BTreeMap<String, (SourceId, Span)>,
}

/// The paths of the schemas to which options were applied.
#[derive(Clone, Debug, Default)]
pub struct OptionPaths {
    /// The paths that an option had.
    pub(super) used: BTreeSet<String>,
    /// All paths, if any option has one.
    pub(super) all: BTreeSet<String>,
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

    /// Reports the paths of options at which no schema has a type.
    pub fn report_unknown_paths(&self, paths: &OptionPaths, diagnostics: &mut Diagnostics) {
        let names = self.names.keys();
        let others = self.replacements.keys().chain(self.derives.keys());
        let all: BTreeSet<&String> = names.chain(others).collect();
        for path in all.into_iter().filter(|path| !paths.used.contains(*path)) {
            let message = format!("an option has the path `{path}`, where no type is generated");
            let known = paths.all.iter().map(String::as_str);
            let help = did_you_mean(path, known.filter(|known| known != path));
            let diagnostic = Diagnostic::error(Code::UnknownPath, message).maybe_help(help);
            diagnostics.push(self.at_place(diagnostic, path, "no type here"));
        }
    }

    /// Reports a name of an option that another type has.
    pub(super) fn report_clash(&self, name: &TypeName, diagnostics: &mut Diagnostics) {
        let message = format!("an option names a type `{name}`, but that name is taken");
        let diagnostic = Diagnostic::error(Code::InvalidOption, message);
        let mut names = self.names.iter();
        let path = names.find(|(_, other)| *other == name);
        let path = path.map_or("", |(path, _)| path.as_str());
        diagnostics.push(self.at_place(diagnostic, path, "another type has this name"));
    }

    fn at_place(&self, diagnostic: Diagnostic, path: &str, label: &str) -> Diagnostic {
        match self.places.get(path) {
            Some((source, span)) => diagnostic.at(*source, *span, label),
            None => diagnostic,
        }
    }
}
