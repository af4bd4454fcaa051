//! Lowers `types` of a kind to the options of its Rust types.

use std::fmt::Display;

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::load::manifest::{
    BuiltinTypeUse, Manifest, OneOrMany, ResourceSection, Spanned, TypeOption,
};
use crate::model::generated_types::ExistingType;
use crate::model::identifier::{InvalidTypeName, TypeName};
use crate::model::type_options::{Builtins, Options};
use crate::rust::{RustPath, RustType};

/// Reads the options of one kind, and reports those that are not Rust.
struct OptionReader<'a> {
    manifest: &'a Manifest,
    options: Options,
    diagnostics: &'a mut Diagnostics,
}

/// The options of a kind. Enums are open unless the manifest closes them: a value that a later
/// version of the definition allows must not hide the object from its handlers.
pub(super) fn options(
    manifest: &Manifest,
    section: &ResourceSection,
    diagnostics: &mut Diagnostics,
) -> Options {
    let tolerant = Options {
        open_enums: true,
        ..Options::default()
    };
    let Some(types) = section.types.as_ref().map(|types| &types.value) else {
        return tolerant;
    };
    let flag = |flag: Option<Spanned<bool>>, default| flag.map_or(default, |flag| flag.value);
    let builtins = types.builtin_types.map(|it| match it.value {
        BuiltinTypeUse::Exact => Builtins::Exact,
        BuiltinTypeUse::Compatible => Builtins::Compatible,
        BuiltinTypeUse::None => Builtins::None,
    });
    let mut reader = OptionReader {
        manifest,
        options: Options {
            open_enums: flag(types.open_enums, tolerant.open_enums),
            builders: flag(types.builders, tolerant.builders),
            builtins: builtins.unwrap_or(tolerant.builtins),
            ..tolerant
        },
        diagnostics,
    };
    for option in &types.rename {
        let name = |text: &str| text.parse::<TypeName>();
        let invalid = |error: InvalidTypeName| (error.to_string(), "not a name for a type");
        if let Some((path, name)) = reader.read(option, |text| name(text).map_err(invalid)) {
            reader.options.names.insert(path, name);
        }
    }
    for option in &types.replace {
        let read = |text: &str| RustType::parse(text).map_err(|error| not_rust(text, &error));
        if let Some((path, rust)) = reader.read(option, read) {
            let existing = ExistingType {
                rust,
                default: false,
            };
            reader.options.replacements.insert(path, existing);
        }
    }
    for option in &types.derive_at {
        if let Some((path, derive)) = reader.read(option, derive) {
            let derives = reader.options.derives.entry(path).or_default();
            derives.push(derive);
        }
    }
    let everywhere = types.derive.as_ref().map(OneOrMany::as_slice);
    for value in everywhere.unwrap_or_default() {
        let derive = reader.parse(value, derive);
        reader.options.derives_everywhere.extend(derive);
    }
    reader.options
}

/// A message, and the label of its place.
type OptionMistake = (String, &'static str);

fn derive(text: &str) -> Result<RustPath, OptionMistake> {
    RustPath::parse(text).map_err(|error| not_rust(text, &error))
}

fn not_rust(text: &str, error: &impl Display) -> OptionMistake {
    (format!("`{text}` is not allowed: {error}"), "not allowed")
}

// === impl OptionReader ===

impl OptionReader<'_> {
    /// The path and the value of an option.
    fn read<T>(
        &mut self,
        option: &TypeOption,
        parse: impl Fn(&str) -> Result<T, OptionMistake>,
    ) -> Option<(String, T)> {
        let path = &option.path;
        let place = (self.manifest.source, path.span);
        self.options.places.insert(path.value.clone(), place);
        let value = self.parse(&option.value, parse)?;
        Some((path.value.clone(), value))
    }

    fn parse<T>(
        &mut self,
        text: &Spanned<String>,
        parse: impl Fn(&str) -> Result<T, OptionMistake>,
    ) -> Option<T> {
        match parse(&text.value) {
            Ok(value) => Some(value),
            Err((message, label)) => {
                self.diagnostics
                    .push(Diagnostic::error(Code::InvalidOption, message).at(
                        self.manifest.source,
                        text.span,
                        label,
                    ));
                None
            }
        }
    }
}
